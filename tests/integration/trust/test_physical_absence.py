"""After the maintenance step of docs/erasure.md no file of the data directory holds a byte of what was erased."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from local.postgres import MIGRATOR, OWNER, temporary_server
from local.proof import files_that_hold, scrub
from tests.integration.conftest import Database, migrate_template
from tests.integration.probe import QuickEmbedder, everywhere, scratch_world
from tests.integration.trust.erasing import done, purge, with_bucket
from tests.integration.trust.test_erasure_by_selector import CANARY, SUBJECT, plant
from tests.integration.world import READER, new_world


@pytest.mark.slow
def test_no_file_of_the_data_directory_holds_the_erased(tmp_path: Path) -> None:
    with temporary_server() as server:
        server.ensure_database("physical")
        database = Database(server, "physical")
        migrate_template(database.url(MIGRATOR))
        world = new_world(database, QuickEmbedder(), tmp_path)
        with_bucket(world)
        kept = world.ingest("Zq3keeper stays.")["memory_id"]
        plant(world, SUBJECT)
        with database.superuser() as owner:
            owner.execute("analyze")
            owner.execute("checkpoint")
        before = files_that_hold(server.data_dir, CANARY)
        assert any("pg_wal" in path.parts for path in before) and any("base" in path.parts for path in before)
        done(purge(world, data_subject=SUBJECT))
        assert everywhere(world, CANARY) == []
        world.close()
        scrub(database.url(OWNER))
        assert files_that_hold(server.data_dir, CANARY) == []
        assert files_that_hold(server.data_dir, CANARY.upper()) == []
        assert files_that_hold(server.data_dir, "Zq3keeper") != []
        assert world.call(READER, "GET", f"/v1/memories/{kept}").json["text"] == "Zq3keeper stays."
        world.close()


def test_the_planner_keeps_no_sample_of_what_callers_say(postgres: Any, tmp_path: Path) -> None:
    """Samples are copies of values in a catalog that no erasure reaches, and outlive the rows of an empty table."""
    with scratch_world(postgres, QuickEmbedder(), tmp_path) as world:
        plant(world, SUBJECT)
        relation = {"subject": f"Person {CANARY}", "predicate": f"has_{CANARY}", "object": f"Town {CANARY}"}
        for number in range(3):
            world.ingest(
                f"Known {number}.", title=f"Title {CANARY}", author=f"Author {CANARY}", relations=[relation],
                source_uri=f"notes/{CANARY}", revision=f"r-{CANARY}",
            )  # fmt: skip
        world.sql("analyze")
        samples = world.sql(
            "select tablename, attname from pg_stats where schemaname = 'public' and position(%s in lower("
            " coalesce(most_common_vals::text, '') || coalesce(histogram_bounds::text, '')"
            " || coalesce(most_common_elems::text, ''))) > 0",
            CANARY,
        )
        assert samples == []
        # Of vectors, and of plain digests of what was said, none either.
        guessable = world.sql(
            "select s.tablename, s.attname from pg_stats s join pg_attribute a"
            "   on a.attrelid = ('public.' || s.tablename)::regclass and a.attname = s.attname"
            " where s.schemaname = 'public' and (a.atttypid in ('halfvec'::regtype, 'vector'::regtype)"
            "   or a.attname in ('content_sha', 'content_shas', 'dedup_key', 'pending_key', 'request_hash',"
            "                    'text_sha', 'key_sha', 'context_hash'))"
        )
        assert guessable == []
        assert world.sql("select count(*) > 50 as some from pg_stats where schemaname = 'public'")[0]["some"]
