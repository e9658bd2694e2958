"""A principal is stopped, its grants, credentials and keys are changed: by a signed request, at once, audited."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from tests.integration.probe import QuickEmbedder, register_key, scratch_world
from tests.integration.trust.erasing import done
from tests.integration.world import ADMIN, AGENT, ISSUER, READER, REVIEWER, Reply, World, new_world


@pytest.fixture
def world(postgres: Any, tmp_path: Any) -> Iterator[World]:
    with scratch_world(postgres, QuickEmbedder(), tmp_path) as made:
        yield made


def change(world: World, person: str, *, signed: bool = True, **body: Any) -> Reply:
    path = f"/v1/principals/{world.principals.get(person, person)}"
    return world.call(ADMIN, "PATCH", path, body, signed=signed)


def test_what_is_changed_holds_at_once_and_is_audited_without_a_name(world: World) -> None:
    assert world.ingest("Mine.")["status"] == "stored"
    assert change(world, AGENT.name, active=False, signed=False).code == "signature_missing"
    done(change(world, AGENT.name, team_grant="read"))
    assert world.call(AGENT, "POST", "/v1/ingest", {"content": "No longer."}).status == 403
    done(change(world, AGENT.name, team_grant="write", name="Zed Renamed"))
    assert world.ingest("Again.")["status"] == "stored"
    shown = done(change(world, AGENT.name, active=False))
    assert (shown["active"], shown["team_grant"], shown["name"]) == (False, "write", "Zed Renamed")
    assert world.call(AGENT, "GET", "/v1/me").status == 403
    done(change(world, REVIEWER.name, capabilities=[]))
    assert world.call(REVIEWER, "GET", "/v1/quarantine").status == 403
    [last, *_] = [event for event in world.audit() if event["action"] == "principal_changed"]
    assert last["target"] == world.principals[REVIEWER.name]
    assert last["detail"]["before"]["capabilities"] != last["detail"]["after"]["capabilities"] == []
    assert last["detail"]["key_id"] == (world.signing or ("",))[0]
    assert world.sql("select seq from audit_event where detail like '%%Zed Renamed%%'") == []
    alerts = world.sql("select target from outbox where kind = 'principal_changed'")
    assert {"target": world.principals[AGENT.name]} in alerts and len(alerts) == 4


def test_a_credential_is_rotated_and_ownership_stays(world: World) -> None:
    memory = world.ingest("Mine.", target_space="private")["memory_id"]
    later = replace(AGENT, subject="agent-rotated")
    assert world.call(later, "GET", f"/v1/memories/{memory}").status == 403
    added = {"issuer": ISSUER, "subject": later.subject}
    for _ in range(2):  # doing it twice is doing it once
        done(change(world, AGENT.name, add_credential=added))
    assert world.call(later, "GET", f"/v1/memories/{memory}").status == 200
    done(change(world, AGENT.name, remove_credential={"issuer": ISSUER, "subject": AGENT.subject}))
    assert world.call(AGENT, "GET", f"/v1/memories/{memory}").status == 403
    assert world.call(later, "GET", f"/v1/memories/{memory}").status == 200


def test_another_s_credential_is_not_taken_and_not_told_of(world: World, tmp_path: Any) -> None:
    other = new_world(world.database, QuickEmbedder(), tmp_path, suffix="-o", name="other")
    own = {"issuer": ISSUER, "subject": READER.subject}
    foreign = {"issuer": ISSUER, "subject": READER.subject + "-o"}
    answers = [change(world, AGENT.name, add_credential=one) for one in (own, foreign)]
    assert [reply.code for reply in answers] == ["invalid_input"] * 2
    assert len({str(reply.json["errors"]) for reply in answers}) == 1
    done(change(world, AGENT.name, remove_credential=foreign))
    assert other.call(READER, "GET", "/v1/me").status == 200
    for absent in ("prin_" + "0" * 32, other.principals[AGENT.name], "nobody"):
        assert change(world, absent, active=False).status == 404
    assert other.call(AGENT, "GET", "/v1/me").status == 200
    other.close()


def test_keys_are_revoked_and_nobody_takes_from_themselves_what_they_act_with(world: World) -> None:
    assert world.signing is not None
    signing = world.signing[0]
    for body, pointer in (
        ({"active": False}, "/active"),
        ({"capabilities": ["reviewer"]}, "/capabilities"),
        ({"remove_credential": {"issuer": ISSUER, "subject": ADMIN.subject}}, "/remove_credential"),
        ({"revoke_keys": [signing]}, "/revoke_keys"),
    ):
        reply = change(world, ADMIN.name, **body)
        assert (reply.code, reply.json["errors"][0]["pointer"]) == ("invalid_target", pointer)
    key_id, _ = register_key(world, ADMIN)
    # Of another principal it is nobody's key.
    assert done(change(world, REVIEWER.name, revoke_keys=[key_id]))["revoked_keys"] == []
    assert done(change(world, ADMIN.name, revoke_keys=[key_id, "key_none"]))["revoked_keys"] == [key_id]
    listed = done(world.call(ADMIN, "GET", "/v1/principals"))["principals"]
    [admin] = [one for one in listed if one["principal_id"] == world.principals[ADMIN.name]]
    assert admin["key_ids"] == [signing]
    assert done(change(world, ADMIN.name, name="Ada"))["name"] == "Ada"
