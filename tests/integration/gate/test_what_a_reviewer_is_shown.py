def test_why_a_conflict_was_closed_is_known_to_the_chain_by_its_digest(world: World) -> None:
    for seats in (4, 9):
        world.ingest(f"The room of the chain seats {seats} people.")
    conflicts = world.call(REVIEWER, "GET", "/v1/conflicts").json["conflicts"]
    [conflict] = [c["conflict_id"] for c in conflicts if "of the chain" in c["sides"][0]["text"]]
    body = {"resolution": "resolved", "reason": "It grew."}
    assert world.call(REVIEWER, "POST", f"/v1/conflicts/{conflict}/resolve", body).status == 200
    [event] = world.sql("select detail from audit_event where action = 'conflict_closed'")
    assert len(json.loads(event["detail"])["reason"]) == 64 and "grew" not in event["detail"]
