"""What goes wrong for one tenant, or is too much of one, is nobody else's: the work that walks all tenants."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from uuid import UUID

import pytest

from remembrancer.domain.problems import Problem
from remembrancer.flows import erase_work, listing, work
from remembrancer.flows.consistency import upkeep
from remembrancer.flows.context import Services
from remembrancer.flows.reports import write_decay_reports
from remembrancer.flows.sweep import CLAIM, claim_alerts, sweep
from remembrancer.flows.term_stats import recount
from remembrancer.store.database import Database
from tests.integration.probe import QuickEmbedder, scratch_world
from tests.integration.world import AGENT, World, new_world

Walk = Callable[[Services], Any]


@pytest.fixture
def world(postgres: Any, tmp_path: Any) -> Iterator[World]:
    with scratch_world(postgres, QuickEmbedder(), tmp_path) as made:
        yield made


@pytest.fixture
def other(world: World, tmp_path_factory: Any) -> Iterator[World]:
    """A tenant that comes behind: the walks go by the ids, which go by time."""
    made = new_world(world.database, QuickEmbedder(), tmp_path_factory.mktemp("o"), suffix="-o", name="other")
    yield made
    made.close()


@pytest.mark.parametrize(
    ("function", "walk"),
    [
        ("sweep", sweep),
        ("term_stats", recount),
        ("upkeep", upkeep),
        ("decay_report", write_decay_reports),
        ("list_erased", lambda services: listing.step(services, None, None)),
        ("job_step", lambda services: work.step(services, None, None)),
        ("erase_step", lambda services: erase_work.step(services, None, None)),
    ],
)
def test_what_fails_for_one_tenant_is_done_for_the_others_and_fails_aloud(
    world: World, other: World, monkeypatch: pytest.MonkeyPatch, function: str, walk: Walk
) -> None:
    """As for a tenant so large that a statement of its own runs out of time."""
    asked: list[UUID] = []
    job = Database.job

    def failing(self: Database, tenant_id: UUID, *args: Any, **kwargs: Any) -> Any:
        asked.append(tenant_id)
        if tenant_id == UUID(world.tenant_id):
            raise Problem("request_timeout")
        return job(self, tenant_id, *args, **kwargs)

    monkeypatch.setattr(Database, "job", failing)
    with pytest.raises(Problem, match="request_timeout"):
        walk(world.services(function))
    assert UUID(other.tenant_id) in asked


def test_a_chain_that_takes_no_row_stops_no_other_tenants_proposals(world: World, other: World) -> None:
    """A forged row in the next place keeps every row out of a chain: the sweep of that tenant cannot end."""
    for one in (world, other):
        one.propose("Soon too late.")
    world.sql("update proposal set deadline = now() - interval '1 minute'")
    world.sql(
        "insert into audit_event select tenant_id, seq + 1, at, actor_id, actor_kind, action, target, detail,"
        " prev_hash, hash from audit_event where tenant_id = %s order by seq desc limit 1",
        world.tenant_id,
    )
    with pytest.raises(Exception, match="audit_event_pkey"):
        sweep(world.services("sweep"))
    status = "select status from proposal where tenant_id = %s"
    assert other.sql(status, other.tenant_id) == [{"status": "expired"}]
    assert world.sql(status, world.tenant_id) == [{"status": "pending"}]


def test_one_tenants_many_alerts_hold_back_no_other_tenants(world: World, other: World) -> None:
    world.sql(
        "insert into outbox (tenant_id, delivery_id, kind, target, created_at)"
        " select %s, gen_random_uuid(), 'pending', 'x', now() - interval '1 hour' from generate_series(1, %s)",
        world.tenant_id,
        2 * CLAIM,
    )
    other.propose("Somebody waits for this.", AGENT)
    claimed = claim_alerts(world.services("outbox_claim"))
    assert len(claimed) == CLAIM
    assert UUID(other.tenant_id) in {alert.tenant for alert in claimed}
