"""Work that goes on after its request, and what it left: for who asked, as long as they may have it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from remembrancer.domain.ids import parse_id
from remembrancer.flows import erase_work, work
from remembrancer.flows.reports import write_decay_reports
from tests.integration.admission.conftest import Bucket, markdown
from tests.integration.probe import QuickEmbedder, scratch_world
from tests.integration.trust.erasing import done, dsar, with_bucket
from tests.integration.world import (
    ADMIN,
    AGENT,
    OTHER_AGENT,
    REVIEWER,
    SECOND_REVIEWER,
    Person,
    Reply,
    World,
    new_world,
)

GUIDE = "".join(f"# Urn {n}\n\nThe urn number {n} is kept in room {n}.\n\n" for n in range(66))


@pytest.fixture
def world(postgres: Any, tmp_path: Any) -> Iterator[World]:
    with scratch_world(postgres, QuickEmbedder(), tmp_path) as made:
        yield made


@pytest.fixture
def bucket(world: World) -> Bucket:
    return with_bucket(world)


@pytest.fixture
def other(world: World, tmp_path_factory: Any) -> Iterator[World]:
    made = new_world(world.database, QuickEmbedder(), tmp_path_factory.mktemp("o"), suffix="-o", name="other")
    yield made
    made.close()


def run(world: World, reply: Reply) -> None:
    """As the state machine does."""
    assert reply.status == 202, reply.text
    tenant_id, job_id = UUID(world.tenant_id), parse_id("job", reply.json["job_id"])
    step, worker = (erase_work.step, "erase_step") if "dsar_id" in reply.json else (work.step, "job_step")
    while step(world.services(worker), tenant_id, job_id)["more"]:
        pass


# A login that is somebody else's by the time the work begins ------------------------------------------------
def asked_for(world: World, kind: str) -> tuple[Reply, Person, Person]:
    """The job, who asked for it, and another who could have."""
    if kind == "export":
        return world.call(REVIEWER, "POST", "/v1/export", {"format": "jsonl"}), REVIEWER, SECOND_REVIEWER
    if kind == "dsar":
        return dsar(world, data_subject="Ana"), ADMIN, ADMIN
    return markdown(world, GUIDE), AGENT, OTHER_AGENT


def move(world: World, person: Person, into: World, to: Person) -> Person:
    """The login goes to another principal, as two signed requests do it; who had it has a new one."""
    later = replace(person, subject=f"{person.subject}-later")
    old = {"tenant": world.tenant_id, "id": world.principals[person.name].removeprefix("prin_")}
    new = {"tenant": into.tenant_id, "id": into.principals[to.name].removeprefix("prin_")}
    world.sql(
        "update credential set tenant_id = %s, principal_id = %s where subject = %s",
        new["tenant"], new["id"], person.subject,
    )  # fmt: skip
    world.sql(
        "insert into credential (tenant_id, issuer, subject, principal_id, created_at) values (%s, %s, %s, %s, now())",
        old["tenant"], person.issuer, later.subject, old["id"],
    )  # fmt: skip
    return later


@pytest.mark.parametrize(
    ("kind", "where"),
    [("export", "here"), ("import", "here"), ("export", "there"), ("import", "there"), ("dsar", "there")],
)
def test_a_job_works_for_who_asked_and_for_nobody_who_has_their_login_since(
    world: World, other: World, bucket: Bucket, kind: str, where: str
) -> None:
    into = world if where == "here" else other
    reply, asked, to = asked_for(world, kind)
    into.ingest("The heron is white.", REVIEWER, target_space="private")
    later = move(world, asked, into, to)
    chain = "select count(*) as n from audit_event where tenant_id = %s"
    before = other.sql(chain, other.tenant_id)
    run(world, reply)
    job = done(world.call(later, "GET", f"/v1/jobs/{reply.json['job_id']}"))
    assert (job["status"], job["failure"], job["link"]) == ("failed", "forbidden", None)
    assert bucket.objects == {}
    assert world.sql("select memory_id from memory where title like 'Urn%%'") == []
    assert world.sql("select ordinal from job_item") == []
    assert other.sql(chain, other.tenant_id) == before


# What it left, when who asked may not have it any more ------------------------------------------------------
def change(world: World, person: Person, **body: Any) -> None:
    done(world.call(ADMIN, "PATCH", f"/v1/principals/{world.principals[person.name]}", body, signed=True))


@pytest.mark.parametrize(
    ("spaces", "lost", "linked"),
    [
        (None, {"team_grant": "none"}, False),
        (["team_shared"], {"team_grant": "none"}, False),
        (None, {"capabilities": ["reviewer"]}, False),  # `pii` is gone
        (None, {"capabilities": ["pii"]}, False),
        (["private"], {"team_grant": "none"}, True),
        (None, {"team_grant": "read"}, True),
        (None, {"name": "Rita Renamed"}, True),
    ],
)
def test_a_bundle_is_linked_for_who_may_still_read_what_is_in_it(
    world: World, bucket: Bucket, spaces: list[str] | None, lost: dict[str, Any], linked: bool
) -> None:
    world.ingest("The team's heron is grey; write to " + "ana.lee" + "@" + "post.example.org.")
    reply = world.call(REVIEWER, "POST", "/v1/export", {"format": "jsonl", "spaces": spaces})
    run(world, reply)
    path = f"/v1/jobs/{reply.json['job_id']}"
    assert done(world.call(REVIEWER, "GET", path))["link"] is not None
    change(world, REVIEWER, **lost)
    after = world.call(REVIEWER, "GET", path)
    assert after.status == (200 if linked else 403), after.text
    assert ("bucket.test" in after.text) == linked


def test_a_bundle_of_who_never_saw_personal_data_is_linked(world: World, bucket: Bucket) -> None:
    reply = world.call(SECOND_REVIEWER, "POST", "/v1/export", {"format": "ump"})
    run(world, reply)
    job = done(world.call(SECOND_REVIEWER, "GET", f"/v1/jobs/{reply.json['job_id']}"))
    assert job["link"] is not None and job["result"]["pii"] is False


def test_a_reviewer_without_the_teams_space_reads_nothing_of_it_in_a_report(
    world: World, bucket: Bucket
) -> None:
    """A report lists the ids, owners and dates of every space."""
    memory = world.ingest("The heron is grey.", expires_at="2020-01-01T00:00:00Z")["memory_id"]
    world._open["decay_report"] = replace(world.services("decay_report"), objects=bucket)
    write_decay_reports(world.services("decay_report"))
    [report] = done(world.call(REVIEWER, "GET", "/v1/decay-reports"))["reports"]
    paths = [
        f"/v1/decay-reports/{report['report_id']}", "/v1/decay-reports", "/v1/decayed", "/v1/consistency",
        "/v1/quarantine", "/v1/conflicts", "/v1/stats/review", "/v1/proposals", f"/v1/memories/{memory}/history",
    ]  # fmt: skip
    assert memory in world.call(REVIEWER, "GET", paths[0]).text
    change(world, REVIEWER, team_grant="none")
    told = {path: world.call(REVIEWER, "GET", path) for path in paths}
    assert {path: reply.status for path, reply in told.items()} == dict(
        zip(paths, (403, 403, 200, 200, 403, 403, 403, 200, 404), strict=True)
    )
    assert not [path for path, reply in told.items() if memory in reply.text]
