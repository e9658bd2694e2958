"""What one remember stores, and who is shown it."""

from __future__ import annotations

from tests.integration.remember.desk import Desk, evidence, relation
from tests.integration.world import AUDITOR, READER

TEXT = "Ada Byron works at the Analytical Society."


def test_one_text_and_one_relationship(desk: Desk) -> None:
    done = desk.remember(
        [evidence(TEXT, labels=["note"], metadata={"page": 3}, data_subjects=["ada"])],
        [relation("Ada Byron", "works_at", "Analytical Society", ref="job")],
    )
    [item] = done["evidence"]
    [result] = done["relationships"]
    [split] = result["splits"]
    assert (done["state"], item["disposition"], item["reason"]) == ("completed", "stored", None)
    assert (result["ref"], result["disposition"], split["version"]) == ("job", "stored", 1)
    assert split["subject"]["name"] == "Ada Byron"
    assert split["object"]["entity"]["name"] == "Analytical Society"
    assert split["predicate"] == {"key": "works_at", "kind": "state", "cardinality": "one"}
    assert split["supports"] == [
        {
            "evidence_index": 0,
            "evidence_id": item["evidence_id"],
            "occurrence_id": item["occurrence_id"],
            "start": 0,
            "end": len(TEXT),
        }
    ]
    shown = desk.world.call(READER, "GET", f"/v1/memories/{item['evidence_id']}").json
    assert shown["text"] == TEXT and shown["kind"] == "episodic"
    assert "admitted_by:remember" in shown["provenance"]
    assert [relationship["spans"] for relationship in shown["relationships"]] == [[[0, len(TEXT)]]]
    history = desk.world.call(READER, "GET", f"/v1/relationships/{split['relationship_id']}/history").json
    assert [version["object"] for version in history["versions"]] == ["Analytical Society"]
    [support] = history["versions"][0]["supports"]
    assert (support["memory_id"], support["start"], support["end"]) == (item["evidence_id"], 0, len(TEXT))
    [row] = desk.world.sql("select labels, metadata, data_subjects, item from submission")
    assert row == {"labels": ["note"], "metadata": {"page": 3}, "data_subjects": ["ada"], "item": 0}
    [event] = [e for e in desk.world.audit() if e["action"] == "remembered"]
    assert TEXT not in str(event) and "Ada" not in str(event)
    assert desk.world.call(AUDITOR, "GET", "/v1/audit/verify").json["ok"] is True
