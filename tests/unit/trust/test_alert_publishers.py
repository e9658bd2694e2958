"""Alerts count as delivered only when the receiver took them, under the same id in every attempt."""

import base64
import hmac
import json
import logging
import secrets
import socket
import threading
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from uuid import UUID, uuid4

import boto3
import pytest
from botocore.exceptions import ClientError, ConnectTimeoutError
from moto import mock_aws

from remembrancer.adapters.alerts import EventBridgePublisher, LogPublisher, WebhookPublisher
from remembrancer.domain.alerts import Alert

TENANT = UUID("018f0000-0000-7000-8000-000000000001")
NOW = datetime(2026, 11, 29, 12, 0, 0, 500_000, tzinfo=UTC)
KEY = secrets.token_bytes(24)
SECRET = "whsec_" + base64.b64encode(KEY).decode()


def alerts(count):
    return [Alert(uuid4(), TENANT, "pending", f"prop_{n}", NOW - timedelta(seconds=n)) for n in range(count)]


def ids(batch):
    return frozenset(alert.delivery_id for alert in batch)


class Bus:
    """EventBridge's client: refuses the entries and calls it is told to."""

    def __init__(self, refused=(), errors=()):
        self.refused = set(refused)
        self.errors = list(errors)
        self.calls = []

    def put_events(self, Entries):
        self.calls.append(Entries)
        if self.errors and (error := self.errors.pop(0)):
            raise error
        answers = [
            {"ErrorCode": "ThrottlingException", "ErrorMessage": "later"}
            if json.loads(entry["Detail"])["target"] in self.refused
            else {"EventId": str(uuid4())}
            for entry in Entries
        ]
        return {"FailedEntryCount": sum("ErrorCode" in answer for answer in answers), "Entries": answers}


def test_events_arrive_at_a_bus():
    with mock_aws():
        region = {"region_name": "eu-central-1", "aws_access_key_id": "test", "aws_secret_access_key": "test"}
        events = boto3.client("events", **region)
        events.create_event_bus(Name="memory")
        sqs = boto3.client("sqs", **region)
        queue = sqs.create_queue(QueueName="seen")["QueueUrl"]
        arn = sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
        pattern = json.dumps({"source": ["remembrancer"], "detail-type": ["pending"]})
        events.put_rule(Name="all", EventBusName="memory", EventPattern=pattern)
        events.put_targets(Rule="all", EventBusName="memory", Targets=[{"Id": "q", "Arn": arn}])
        batch = alerts(12)
        outcome = EventBridgePublisher(events, "memory").publish(batch)
        assert outcome.delivered == ids(batch)
        assert not outcome.failed
        seen = [
            json.loads(message["Body"])["detail"]
            for _ in range(2)
            for message in sqs.receive_message(QueueUrl=queue, MaxNumberOfMessages=10)["Messages"]
        ]
        assert sorted(seen, key=str) == sorted((alert.document() for alert in batch), key=str)


def test_calls_hold_at_most_ten_events():
    bus = Bus()
    EventBridgePublisher(bus, "memory").publish(alerts(25))
    assert [len(call) for call in bus.calls] == [10, 10, 5]
    EventBridgePublisher(bus, "memory").publish([])
    assert len(bus.calls) == 3


def test_a_refused_entry_stays_due_and_keeps_its_id():
    batch = alerts(12)
    bus = Bus(refused={"prop_1", "prop_11"})
    publisher = EventBridgePublisher(bus, "memory")
    outcome = publisher.publish(batch)
    assert outcome.failed == {
        batch[1].delivery_id: "ThrottlingException",
        batch[11].delivery_id: "ThrottlingException",
    }
    assert outcome.delivered == ids(batch) - outcome.failed.keys()
    bus.refused.clear()
    again = [alert for alert in batch if alert.delivery_id in outcome.failed]
    assert publisher.publish(again).delivered == ids(again)
    first, second = bus.calls[0][1]["Detail"], bus.calls[2][0]["Detail"]
    assert first == second


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (
            ClientError({"Error": {"Code": "AccessDeniedException", "Message": "no"}}, "PutEvents"),
            "AccessDeniedException",
        ),
        (ConnectTimeoutError(endpoint_url="bus"), "ConnectTimeoutError"),
    ],
)
def test_a_failed_call_does_not_lose_the_next(error, reason):
    batch = alerts(15)
    outcome = EventBridgePublisher(Bus(errors=[error]), "memory").publish(batch)
    assert outcome.failed == {alert.delivery_id: reason for alert in batch[:10]}
    assert outcome.delivered == ids(batch[10:])


def test_the_log_gets_ids_only(caplog):
    batch = alerts(2)
    with caplog.at_level(logging.INFO):
        outcome = LogPublisher(logging.getLogger("alerts")).publish(batch)
    assert outcome.delivered == ids(batch)
    assert [record.alert for record in caplog.records] == [alert.document() for alert in batch]


class Receiver(HTTPServer):
    def __init__(self, status, headers):
        self.seen = []
        self.status = status
        self.headers = headers
        super().__init__(("127.0.0.1", 0), Handler)


class Handler(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.seen.append((self.path, dict(self.headers), body))
        self.send_response(self.server.status)
        for name, value in self.server.headers.items():
            self.send_header(name, value)
        self.end_headers()

    do_GET = do_POST

    def log_message(self, *_):
        """Quiet."""


@contextmanager
def receiving(status=204, headers=None):
    server = Receiver(status, headers or {})
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server, f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def webhook(url, **options):
    return WebhookPublisher(url, SECRET, clock=lambda: NOW, **options)


def test_a_webhook_is_signed_as_the_standard_says():
    batch = alerts(2)
    with receiving() as (server, url):
        outcome = webhook(url + "/hook?a=b").publish(batch)
    assert outcome.delivered == ids(batch)
    for alert, (path, headers, body) in zip(batch, server.seen, strict=True):
        assert path == "/hook?a=b"
        assert json.loads(body) == alert.document()
        assert headers["webhook-id"] == str(alert.delivery_id)
        assert headers["webhook-timestamp"] == str(int(NOW.timestamp()))
        signed = f"{alert.delivery_id}.{int(NOW.timestamp())}.".encode() + body
        expected = base64.b64encode(hmac.digest(KEY, signed, "sha256")).decode()
        assert headers["webhook-signature"] == f"v1,{expected}"


@pytest.mark.parametrize("status", [200, 202, 299])
def test_any_success_is_a_delivery(status):
    batch = alerts(1)
    with receiving(status) as (_, url):
        assert webhook(url).publish(batch).delivered == ids(batch)


@pytest.mark.parametrize("status", [400, 404, 410, 429, 500, 503])
def test_any_other_answer_leaves_the_alert_due(status):
    batch = alerts(1)
    with receiving(status) as (_, url):
        outcome = webhook(url).publish(batch)
    assert outcome.failed == {batch[0].delivery_id: f"http_{status}"}
    assert not outcome.delivered


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_redirects_are_not_followed(status):
    batch = alerts(1)
    with receiving() as (inner, inner_url), receiving(status, {"Location": inner_url}) as (_, url):
        outcome = webhook(url).publish(batch)
    assert outcome.failed == {batch[0].delivery_id: f"http_{status}"}
    assert inner.seen == []


def test_a_silent_receiver_costs_one_timeout():
    batch = alerts(1)
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        outcome = webhook(f"http://127.0.0.1:{listener.getsockname()[1]}", timeout_s=0.2).publish(batch)
    assert outcome.failed == {batch[0].delivery_id: "TimeoutError"}


def test_an_absent_receiver_does_not_stop_the_others():
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        batch = alerts(2)
        outcome = webhook(f"http://127.0.0.1:{unused.getsockname()[1]}").publish(batch)
    assert set(outcome.failed.values()) == {"ConnectionRefusedError"}
    assert outcome.failed.keys() == ids(batch)


@pytest.mark.parametrize(
    "garbage", [b"SSH-2.0-x\r\n", b"HTTP/1.1 9999999 x\r\n\r\n", b"HTTP/1.1 200" + b"x" * 70_000, b""]
)
def test_an_answer_that_is_not_http_leaves_the_alert_due(garbage):
    batch = alerts(1)
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()

        def answer():
            connection, _ = listener.accept()
            with connection:
                connection.recv(65_536)
                connection.sendall(garbage)

        thread = threading.Thread(target=answer)
        thread.start()
        outcome = webhook(f"http://127.0.0.1:{listener.getsockname()[1]}", timeout_s=2).publish(batch)
        thread.join()
    assert outcome.failed.keys() == ids(batch)


@pytest.mark.parametrize(
    "url",
    [
        "http://receiver.example/hook",
        "http://169.254.169.254/latest",
        "http://127.0.0.1.example/",
        "http://localhost@receiver.example/",
        "https://user:word@receiver.example/",
        "https://",
        "file:///etc/passwd",
        "ftp://receiver.example",
        "receiver.example",
        "",
        "https://receiver.example:99999/",
    ],
)
def test_unsafe_addresses_are_refused(url):
    with pytest.raises(ValueError, match=r"webhook|[Pp]ort"):
        webhook(url)
