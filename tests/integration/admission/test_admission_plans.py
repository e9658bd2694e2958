"""The functions that keep the plans of an admission say what store/visibility says, and give nobody a right."""

from __future__ import annotations

import pytest

from remembrancer.store import visibility
from tests.integration.world import World

FUNCTIONS = {"memory_near", "memory_near_indexed", "memory_known", "centroid_near", "memory_insert"}


def plain(sql: str) -> str:
    """In the names of a function's parameters, whatever the white space."""
    return " ".join(sql.replace("%(at)s", "p_at").replace("%(retention)s", "p_retention").split())


@pytest.fixture
def functions(world: World) -> dict[str, tuple[str, bool]]:
    """By name: the source, and whether the function runs with its owner's rights."""
    rows = world.sql(
        "select proname, prosrc, prosecdef from pg_proc where proname = any (%s)", [sorted(FUNCTIONS)]
    )
    return {row["proname"]: (plain(row["prosrc"]), row["prosecdef"]) for row in rows}


def test_they_show_what_is_live_and_nothing_else(functions: dict[str, tuple[str, bool]]) -> None:
    assert functions.keys() == FUNCTIONS
    live = plain(visibility.live())
    assert functions["memory_near"][0].count(live) == 1
    assert functions["memory_near_indexed"][0].count(live) == 1
    known = functions["memory_known"][0]
    assert f"{plain(visibility.NOT_HELD).removeprefix('not ')} as held" in known
    assert f"p_at < {plain(visibility.EXPIRY)}" in known


def test_they_run_with_the_rights_of_their_caller(functions: dict[str, tuple[str, bool]]) -> None:
    assert not any(definer for _, definer in functions.values())


def test_nobody_else_may_call_them(world: World) -> None:
    rows = world.sql(
        """
        select r.rolname, p.proname from pg_proc p cross join pg_roles r
        where p.proname = any (%s) and r.rolname like 'rem\\_%%' and r.rolname <> p.proowner::regrole::text
          and not r.rolsuper and has_function_privilege(r.oid, p.oid, 'execute')
        """,
        [sorted(FUNCTIONS)],
    )
    callers = {(row["rolname"], row["proname"]) for row in rows}
    assert {role for role, _ in callers} == {
        "rem_ingest", "rem_job", "rem_approve", "rem_proposal", "rem_remember_commit"
    }  # fmt: skip
    assert {name for role, name in callers if role == "rem_proposal"} == {
        "memory_near",
        "memory_near_indexed",
    }
