"""Where alerts go: an EventBridge bus, the log, or one webhook signed per Standard Webhooks.

The webhook's address comes from the operator's settings alone, never from a tenant or a request, so it is
no way for a caller to reach inside; all the same it is https only (plain http to this machine itself),
redirects are not followed, and no byte of the answer's body is read. The function that uses it runs
outside the VPC and holds no database credential.
"""

from __future__ import annotations

import http.client
import json
import logging
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any
from urllib.parse import SplitResult, urlsplit

from botocore.exceptions import BotoCoreError, ClientError
from standardwebhooks import Webhook

from remembrancer.domain.alerts import Alert, Deliveries

EVENT_SOURCE = "remembrancer"
PUT_EVENTS_LIMIT = 10
"""Entries that EventBridge takes in one call."""
TIMEOUT_S = 5.0

_LOOPBACK = frozenset(("localhost", "127.0.0.1", "::1"))


class EventBridgePublisher:
    """One event an alert: source `remembrancer`, detail type = the alert's kind, detail = its document."""

    def __init__(self, client: Any, bus: str) -> None:
        """`client` is boto3's `events` client, with its timeouts set; `bus` a name or ARN."""
        self._client = client
        self._bus = bus

    def publish(self, alerts: Sequence[Alert]) -> Deliveries:
        """Calls of ten; a refused entry or call leaves its alerts due, with the service's error code."""
        answers: dict[Alert, str | None] = {}
        for start in range(0, len(alerts), PUT_EVENTS_LIMIT):
            batch = alerts[start : start + PUT_EVENTS_LIMIT]
            answers.update(zip(batch, self._put(batch), strict=True))
        return _sorted_out(answers)

    def _put(self, batch: Sequence[Alert]) -> list[str | None]:
        """An error code for each alert, None where the bus took it."""
        entries = [
            {
                "Source": EVENT_SOURCE,
                "DetailType": alert.kind,
                "Detail": json.dumps(alert.document()),
                "EventBusName": self._bus,
                "Time": alert.created_at,
            }
            for alert in batch
        ]
        try:
            answer = self._client.put_events(Entries=entries)
        except ClientError as error:
            return [error.response["Error"]["Code"]] * len(batch)
        except BotoCoreError as error:
            return [type(error).__name__] * len(batch)
        # The answer has an entry for each of ours, in order; a call that succeeds may still refuse some.
        return [None if "EventId" in entry else entry["ErrorCode"] for entry in answer["Entries"]]


class LogPublisher:
    """One line an alert; a line written is a delivery."""

    def __init__(self, logger: logging.Logger) -> None:
        self._logger = logger

    def publish(self, alerts: Sequence[Alert]) -> Deliveries:
        for alert in alerts:
            self._logger.info("alert", extra={"alert": alert.document()})
        return Deliveries(frozenset(alert.delivery_id for alert in alerts))


class WebhookPublisher:
    """One POST an alert, with `webhook-id` (the delivery id), `webhook-timestamp` and `webhook-signature`."""

    def __init__(
        self, url: str, secret: str, *, clock: Callable[[], datetime], timeout_s: float = TIMEOUT_S
    ) -> None:
        """`secret` as Standard Webhooks writes it (base64, `whsec_` in front allowed); `clock` gives UTC.

        Raises ValueError for an address that is not https (or http to this machine), that carries
        credentials or an impossible port.
        """
        self._address = _address(url)
        self._port = self._address.port
        self._webhook = Webhook(secret)
        self._clock = clock
        self._timeout_s = timeout_s

    def publish(self, alerts: Sequence[Alert]) -> Deliveries:
        """An answer of 200..299 is a delivery; anything else, a redirect too, leaves the alert due."""
        return _sorted_out({alert: self._post(alert) for alert in alerts})

    def _post(self, alert: Alert) -> str | None:
        body = json.dumps(alert.document(), separators=(",", ":"))
        now = self._clock()
        headers = {
            "Content-Type": "application/json",
            "User-Agent": "remembrancer",
            "webhook-id": str(alert.delivery_id),
            "webhook-timestamp": str(int(now.timestamp())),
            "webhook-signature": self._webhook.sign(str(alert.delivery_id), now, body),
        }
        connection = self._connection()
        try:
            connection.request("POST", self._target(), body.encode(), headers)
            status = connection.getresponse().status
        except (OSError, http.client.HTTPException) as error:
            return type(error).__name__
        finally:
            connection.close()
        return None if 200 <= status < 300 else f"http_{status}"

    def _connection(self) -> http.client.HTTPConnection:
        kind = http.client.HTTPSConnection if self._address.scheme == "https" else http.client.HTTPConnection
        return kind(self._address.hostname or "", self._port, timeout=self._timeout_s)

    def _target(self) -> str:
        query = f"?{self._address.query}" if self._address.query else ""
        return (self._address.path or "/") + query


def _address(url: str) -> SplitResult:
    address = urlsplit(url)
    local = address.scheme == "http" and address.hostname in _LOOPBACK
    if not address.hostname or not (address.scheme == "https" or local):
        raise ValueError("a webhook's address is https, or http on this machine")
    if address.username is not None or address.password is not None:
        raise ValueError("a webhook's address holds no credentials")
    return address


def _sorted_out(answers: dict[Alert, str | None]) -> Deliveries:
    return Deliveries(
        frozenset(alert.delivery_id for alert, reason in answers.items() if reason is None),
        {alert.delivery_id: reason for alert, reason in answers.items() if reason is not None},
    )
