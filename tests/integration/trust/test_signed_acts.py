"""Signed admin acts through the API: what does not hold is refused with its reason, and audited."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from remembrancer.adapters.signatures import sign_request
from tests.integration.probe import QuickEmbedder, everywhere, public_pem, register_key, scratch_world
from tests.integration.world import ADMIN, AGENT, AUDITOR, BASE, Reply, World

BODY = {"memory_ids": ["mem_" + "0" * 32], "dry_run": True, "reason": "other"}
TEXT = json.dumps(BODY)


@pytest.fixture(scope="module")
def world(postgres: Any, tmp_path_factory: Any) -> Iterator[World]:
    with scratch_world(postgres, QuickEmbedder(), tmp_path_factory.mktemp("signed")) as made:
        yield made


def signature(world: World, *, path: str = "/v1/purge", body: str = TEXT, **more: Any) -> dict[str, str]:
    assert world.signing is not None
    key_id, private = more.pop("key", world.signing)
    return sign_request(
        method=more.pop("method", "POST"),
        target_uri=more.pop("base", BASE) + path,
        body=body.encode(),
        key_id=key_id,
        algorithm="ed25519",
        private_key=private,
        now=more.pop("now", datetime.now(UTC)),
        **more,
    )


def send(world: World, headers: dict[str, str], **more: Any) -> Reply:
    path = more.pop("path", "/v1/purge")
    return world.call(
        ADMIN, more.pop("method", "POST"), path, raw=more.pop("raw", TEXT), headers=headers, **more
    )


def refused(world: World, reply: Reply, code: str, reason: str | None) -> None:
    assert (reply.status, reply.code) == (401, code), reply.text
    assert [error["code"] for error in reply.json["errors"]] == ([] if reason is None else [reason])
    event = world.audit()[0]
    assert event["action"] == "signature_refused"
    assert event["detail"]["code"] == code
    assert event["detail"]["reasons"] == ([] if reason is None else [reason])
    assert event["detail"]["correlation_id"] == reply.json["correlation_id"]


def test_a_good_signature_is_accepted_and_witnessed(world: World) -> None:
    assert send(world, signature(world)).status == 200
    assert world.audit()[0]["action"] == "purge_dry_run"


def test_each_public_base_is_as_good(world: World) -> None:
    reply = send(world, signature(world, base="https://elsewhere.test/prod"))
    refused(world, reply, "signature_invalid", "not_verified")


def test_missing(world: World) -> None:
    refused(world, send(world, {}), "signature_missing", None)
    half = signature(world)
    del half["Signature"]
    reply = send(world, half)
    assert (reply.status, reply.code) == (401, "signature_invalid")


def test_altered(world: World) -> None:
    altered = json.dumps({**BODY, "dry_run": False})
    refused(world, send(world, signature(world), raw=altered), "signature_invalid", "body_altered")
    refused(world, send(world, signature(world), raw=TEXT + " "), "signature_invalid", "body_altered")
    headers = signature(world, path="/v1/principals")
    refused(world, send(world, headers), "signature_invalid", "not_verified")
    headers = signature(world, method="PATCH")
    refused(world, send(world, headers), "signature_invalid", "not_verified")
    headers = signature(world) | {"Content-Digest": signature(world, body=altered)["Content-Digest"]}
    refused(world, send(world, headers, raw=altered), "signature_invalid", "not_verified")


def test_a_query_string_is_not_covered(world: World) -> None:
    reply = send(world, signature(world), path="/v1/purge?dry_run=true")
    refused(world, reply, "signature_invalid", "query_present")


def test_out_of_its_time(world: World) -> None:
    now = datetime.now(UTC)
    for made in (now - timedelta(seconds=121), now + timedelta(seconds=40)):
        refused(world, send(world, signature(world, now=made)), "signature_expired", "out_of_time")
    long_lived = signature(world, lifetime_s=301)
    refused(world, send(world, long_lived), "signature_invalid", "lifetime_wrong")


@pytest.mark.parametrize("key", [None, "replayed-1"])
def test_a_nonce_is_good_for_one_act(world: World, key: str | None) -> None:
    headers = signature(world)
    assert send(world, headers, key=key).status == 200
    refused(world, send(world, headers, key=key), "signature_replayed", None)
    nonce = "n0nce-" + "a" * 20 + str(key)
    nonce = nonce.replace("None", "x")
    assert send(world, signature(world, nonce=nonce)).status == 200
    other = json.dumps({**BODY, "reason": "secret"})
    refused(
        world, send(world, signature(world, nonce=nonce, body=other), raw=other), "signature_replayed", None
    )


def test_keys(world: World) -> None:
    assert world.signing is not None
    key_id, _ = world.signing
    forged = signature(world, key=(key_id, Ed25519PrivateKey.generate()))
    refused(world, send(world, forged), "signature_invalid", "not_verified")
    refused(
        world,
        send(world, signature(world, key=("key_x", world.signing[1]))),
        "signature_invalid",
        "key_unknown",
    )
    others = signature(world, key=register_key(world, AUDITOR))
    refused(world, send(world, others), "signature_invalid", "key_unknown")
    early = register_key(world, ADMIN, usable="now() + interval '1 minute'")
    refused(world, send(world, signature(world, key=early)), "signature_invalid", "key_not_usable")
    revoked = register_key(world, ADMIN)
    assert send(world, signature(world, key=revoked)).status == 200
    world.sql("update signing_key set revoked_at = now() where key_id = %s", revoked[0])
    refused(world, send(world, signature(world, key=revoked)), "signature_invalid", "key_not_usable")


def test_a_new_key_works_after_a_day(world: World) -> None:
    key = Ed25519PrivateKey.generate()
    path = f"/v1/principals/{world.principals[ADMIN.name]}/keys"
    body = {"algorithm": "ed25519", "public_key": public_pem(key)}
    made = world.call(ADMIN, "POST", path, body, signed=True)
    assert made.status == 201, made.text
    usable = datetime.fromisoformat(made.json["usable_from"])
    assert timedelta(hours=23, minutes=59) < usable - datetime.now(UTC) <= timedelta(hours=24)
    pair = (made.json["key_id"], key)
    refused(world, send(world, signature(world, key=pair)), "signature_invalid", "key_not_usable")
    assert world.sql("select count(*) as n from outbox where kind = 'key_registered'") == [{"n": 1}]
    try:
        for instant, status in ((usable - timedelta(seconds=1), 401), (usable + timedelta(seconds=1), 200)):
            world.close()
            world.clock = lambda instant=instant: instant
            assert send(world, signature(world, key=pair, now=instant)).status == status, instant
    finally:
        world.close()
        world.clock = None


def test_a_key_is_one_persons_and_comes_back_to_nobody(world: World) -> None:
    key = Ed25519PrivateKey.generate()
    body = {"algorithm": "ed25519", "public_key": public_pem(key)}
    other = {**body, "public_key": body["public_key"].replace("\n", "\r\n")}
    paths = [f"/v1/principals/{world.principals[who.name]}/keys" for who in (ADMIN, AUDITOR)]
    assert world.call(ADMIN, "POST", paths[0], body, signed=True).status == 201
    for path in paths:
        again = world.call(ADMIN, "POST", path, other, signed=True)
        assert (again.code, again.json["errors"][0]["pointer"]) == ("invalid_target", "/public_key")
    world.sql("update signing_key set revoked_at = now() where public_key = %s", body["public_key"])
    assert world.call(ADMIN, "POST", paths[0], body, signed=True).code == "invalid_target"


def test_only_people_hold_keys(world: World) -> None:
    body = {"algorithm": "ed25519", "public_key": public_pem(Ed25519PrivateKey.generate())}
    path = f"/v1/principals/{world.principals[AGENT.name]}/keys"
    assert world.call(ADMIN, "POST", path, body, signed=True).code == "not_found"
    wrong = {**body, "algorithm": "ecdsa-p256-sha256"}
    assert world.call(ADMIN, "POST", path, wrong, signed=True).code == "invalid_input"


def test_what_a_caller_writes_into_a_path_never_enters_the_chain(world: World) -> None:
    canary = "zq9-path-canary"
    reply = world.call(ADMIN, "POST", f"/v1/principals/{canary}/keys", {
        "algorithm": "ed25519", "public_key": "x" * 60,
    })  # fmt: skip
    assert reply.status in (401, 422)
    body = {"algorithm": "ed25519", "public_key": public_pem(Ed25519PrivateKey.generate())}
    reply = world.call(ADMIN, "POST", f"/v1/principals/{canary}/keys", body, key="k-path")
    refused(world, reply, "signature_missing", None)
    assert everywhere(world, canary) == []


def test_settings_change_only_by_a_signature(world: World) -> None:
    before = world.call(ADMIN, "GET", "/v1/settings").json
    raw = json.dumps({"four_eyes": True})
    refused(world, send(world, {}, method="PATCH", path="/v1/settings", raw=raw), "signature_missing", None)
    assert world.call(ADMIN, "GET", "/v1/settings").json == before
    done = world.call(ADMIN, "PATCH", "/v1/settings", {"retention": {"fact": 10}}, signed=True)
    assert done.status == 200 and done.json["retention"] == {**before["retention"], "fact": 10}
    assert {**done.json, "retention": None} == {**before, "retention": None}


def test_refusals_do_not_break_the_chain(world: World) -> None:
    assert world.call(AUDITOR, "GET", "/v1/audit/verify").json["ok"] is True
