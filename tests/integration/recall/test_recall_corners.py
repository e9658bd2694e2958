"""What a hostile review of recall found: each was wrong once."""

from __future__ import annotations

import json
from typing import Any

import pytest

from remembrancer.domain import packing
from remembrancer.store import search
from tests.integration.recall.conftest import hold
from tests.integration.world import READER, Reply, World

pytestmark = pytest.mark.usefixtures("answer_always")


def verify(world: World, claim: str, **more: Any) -> dict[str, Any]:
    reply = world.call(READER, "POST", "/v1/verify", {"claim": claim, **more})
    assert reply.status == 200, reply.text
    return dict(reply.json)


def texts(answer: dict[str, Any]) -> list[str]:
    return [hit["text"] for hit in answer["hits"]]


def test_an_alias_that_only_a_held_memory_brought_names_nobody(world: World) -> None:
    priya = {"name": "Priya", "kind": "person"}
    world.ingest(
        "She heads the team.",
        entities=[priya],
        relations=[{"subject": "Priya", "subject_kind": "person", "predicate": "leads", "object": "Halcyon"}],
    )
    held = world.ingest("Priya is Nightingale.", entities=[{**priya, "aliases": ["Nightingale"]}])
    path = "/v1/entities?name="
    assert world.call(READER, "GET", f"{path}Nightingale").json["entities"]
    hold(world, held["memory_id"])
    graph = [h["explain"]["legs"]["graph"] for h in world.recall("Nightingale", explain=True)["hits"]]
    assert graph == [0.0]
    assert world.call(READER, "GET", f"{path}Nightingale").json["entities"] == []
    [shown] = world.call(READER, "GET", f"{path}Priya").json["entities"]
    assert "Nightingale" not in json.dumps(shown)
    assert "Nightingale" not in world.call(READER, "GET", f"/v1/entities/{shown['entity_id']}").text


def test_a_match_shows_no_part_of_what_is_masked(world: World) -> None:
    text = "For questions contact john.smith@acme.example on weekdays or card 4111 1111 1111 1111 at night."
    memory = world.ingest(text)["memory_id"]
    for claim in ("contact acme", "card 1111"):
        [match] = verify(world, claim, memory_ids=[memory])["matches"]
        assert "smith" not in match["text"] and "4111" not in match["text"]
    [match] = verify(world, "For questions contact on weekdays", memory_ids=[memory])["matches"]
    assert match["text"] == "questions contact [redacted:email] on weekdays"


def test_a_claim_is_no_search_expression(world: World) -> None:
    text = "Release builds compile with -Osize for speed."
    world.ingest(text)
    world.ingest("Filler about soup.")
    assert verify(world, text)["verdict"] == "supported"
    assert verify(world, 'Release builds "compile fast" with -Osize')["verdict"] == "partially_supported"
    assert verify(world, text, query="builds -Osize")["compared"] == 1


@pytest.mark.parametrize("exact_max", [4_000, 0])
def test_what_is_left_out_is_in_no_part_of_a_hit(
    world: World, monkeypatch: pytest.MonkeyPatch, exact_max: int
) -> None:
    monkeypatch.setattr(search, "EXACT_MAX", exact_max)
    middle = "The soil was dark and deep there. " * 40
    world.ingest(f"Tomatoes grow well in the sun. {middle}Later we planted a cucumber.")
    world.ingest("Tomatoes are red.")
    for query in ("tomatoes -cucumber", 'tomatoes -"planted a cucumber"'):
        assert texts(world.recall(query)) == ["Tomatoes are red."]


def test_every_excluded_phrase_counts(world: World) -> None:
    phrases = ["blue vases", "running cars", "happy houses", "walking dogs"]
    for phrase in phrases:
        world.ingest(f"We saw {phrase}.")
    world.ingest("Plain talk.")
    asked = "talk " + " ".join(f'-"{phrase}"' for phrase in phrases)
    assert texts(world.recall(asked)) == ["Plain talk."]


def test_a_decayed_hit_has_its_decayed_neighbours(world: World) -> None:
    for minute, text in enumerate(["Hello there Ben.", "The banner code was orange."]):
        world.ingest(
            text,
            source_uri="talk:2",
            observed_at=f"2024-01-01T00:0{minute}:00Z",
            expires_at="2024-06-01T00:00:00Z",
        )
    [hit] = world.recall("banner code", include=["decayed"], limit=1, context=1)["hits"]
    assert [turn["text"] for turn in hit["context"]] == ["Hello there Ben."]


NAMES = {
    "Acme, Inc.": "Who leads Acme, Inc.?",
    "C++": "What about C++ here",
    "foo_bar": "where is foo_bar",
    "St. Mary's Hospital": "At St. Mary's Hospital's door",
    "Ministry of Foreign Affairs of Japan": "the Ministry of Foreign Affairs of Japan",
    "王芳": "王芳昨天喝了什么",
    "O'Brien": "O’Brien's house",
}


def test_the_graph_finds_names_as_they_are_written(world: World) -> None:
    for number, name in enumerate(NAMES):
        world.ingest(
            f"Priya heads team {number}.",
            relations=[{"subject": f"person{number}", "predicate": "leads", "object": name}],
        )
    for number, query in enumerate(NAMES.values()):
        hits = world.recall(query, explain=True)["hits"]
        found = [hit["text"] for hit in hits if hit["explain"]["legs"]["graph"] > 0]
        assert found == [f"Priya heads team {number}."], query


def test_a_claim_about_an_alias_is_contradicted(world: World) -> None:
    world.ingest(
        "Ana Silva works at Globex.",
        entities=[{"name": "Ana Silva", "kind": "person", "aliases": ["Anita"]}],
        relations=[
            {"subject": "Ana Silva", "subject_kind": "person", "predicate": "works_at", "object": "Globex"}
        ],
    )
    for claim in ("Anita works at Initech.", "Anita does not work at Globex."):
        assert verify(world, claim)["contradicted"] is True, claim
    assert verify(world, "Anita works at Globex.")["contradicted"] is False


def test_repetitions_take_no_place_of_another_hit(world: World) -> None:
    printer = "The printer on floor two is called Gutenberg."
    for number in range(8):
        world.ingest(printer, title=f"t{number}", author="Ana")
    world.ingest("The printer needs toner.", author="Ana")
    answer = world.recall("What is the printer on floor two called?", limit=2)
    assert texts(answer) == [printer, "The printer needs toner."]


def sent(reply: Reply) -> int:
    """Bytes of what a function sends: the answer is a string within JSON."""
    return len(json.dumps({"body": reply.text}, ensure_ascii=False).encode())


@pytest.mark.parametrize("what", ["text", "marks", "relationships"])
def test_an_answer_is_no_larger_than_a_function_may_send(
    world: World, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """What does not fit is counted, or on the next page. Marks are escaped twice, a memory may bring 200 relations."""
    assert packing.SENT_BYTES + 700_000 < 6 * 1024 * 1024  # what explains 100 hits
    monkeypatch.setattr(packing, "SENT_BYTES", 40_000)
    for number in range(8):
        world.ingest(
            f"The printer number {number} is called Gutenberg.",
            source_uri="t",
            observed_at=f"2026-01-0{number + 1}T00:00:00Z",
            relations=[
                {"subject": f"{number} {other}", "predicate": "beside", "object": f"x {other}"}
                for other in range(30)
            ]
            if what == "relationships"
            else [],
        )
    piece = {"text": "x x ", "marks": '"\n"\n', "relationships": ""}[what]
    world.sql("update memory set content = content || repeat(%s, 1900)", piece)
    for more in ({"limit": 100}, {"limit": 2, "context": 5}):
        answer = world.call(READER, "POST", "/v1/recall", {"query": "printer called", **more})
        assert answer.status == 200 and sent(answer) < 42_000
        told = sum(1 + len(hit.get("context", [])) for hit in answer.json["hits"])
        assert told
        assert "context" in more or 0 < answer.json["packed"]["omitted"] == 8 - told
    listed, path = 0, "/v1/memories?limit=200"
    while path:
        page = world.call(READER, "GET", path)
        assert sent(page) < 42_000
        listed += len(page.json["memories"])
        more = page.json["next_cursor"]
        path = f"/v1/memories?limit=200&cursor={more}" if more else ""
    assert listed == 8


@pytest.mark.parametrize("query", ['"第3章"', '"用Python编程"'])
def test_a_phrase_may_mix_scripts(world: World, query: str) -> None:
    text = "请看第3章的内容，我们使用Python编程。"
    world.ingest(text)
    assert texts(world.recall(query)) == [text]


@pytest.mark.parametrize("exact_max", [4_000, 0])
def test_two_phrases_may_stand_in_two_passages_of_a_hit(
    world: World, monkeypatch: pytest.MonkeyPatch, exact_max: int
) -> None:
    monkeypatch.setattr(search, "EXACT_MAX", exact_max)
    middle = "The soil was dark and deep there. " * 40
    world.ingest(f"Tomatoes grow well in the sun. {middle}Later we planted a cucumber.")
    assert len(world.recall('"tomatoes grow" "planted a cucumber"')["hits"]) == 1
    assert not world.recall('"tomatoes grow" "planted a melon"')["hits"]


ABOUT_WORDS = [
    "The build runs gcc -Wall for every file.",
    "Laut Bericht ist \u201estate of the art\u201c nicht genug f\u00fcr uns und die Kunden.",
    "She learned it the hard way.",
    "We watched Die Hard again.",
    "The foo field is indexed.",
    "A lookup is spelled foo__bar.",
    "The std namespace is large.",
    "Lists are std::vector there.",
    "\u092e\u0941\u091d\u0947 \u0939\u093f\u0928\u094d\u0926\u0940 \u092a\u0938\u0902\u0926 \u0939\u0948",
    "\u0939\u093e\u0928\u093f \u0926\u0947 \u0926\u0940 \u0939\u0948",
]


@pytest.mark.parametrize("exact_max", [4_000, 0])
@pytest.mark.parametrize(
    ("asked", "holding"),
    [
        ('"gcc -Wall"', [0]),
        ('"state of the art"', [1]),
        ('"die hard"', [3]),
        ('"\u0939\u093f\u0928\u094d\u0926\u0940"', [8]),
        ("foo__bar", [5]),
        ("std::vector", [7]),
        ("\u0939\u093f\u0928\u094d\u0926\u0940", [8]),
    ],
)
def test_what_is_quoted_or_left_out_is_just_what_holds_it(
    world: World, monkeypatch: pytest.MonkeyPatch, asked: str, holding: list[int], exact_max: int
) -> None:
    """A mark inside a phrase, a phrase quoted in a text of another language, a stop word of another language, names of
    several words, letters with vowel signs."""
    monkeypatch.setattr(search, "EXACT_MAX", exact_max)
    for text in ABOUT_WORDS:
        world.ingest(text)
    if asked[0] == '"':
        assert texts(world.recall(asked)) == [ABOUT_WORDS[number] for number in holding]
    rest = set(ABOUT_WORDS) - {ABOUT_WORDS[number] for number in holding}
    everything = "build kunden way watched foo lookup std lists \u0939\u0948"
    assert set(texts(world.recall(f"{everything} -{asked}", limit=100))) == rest


def test_a_held_successor_is_not_named(world: World) -> None:
    first = world.remember("Ana works at Acme in the north office.")
    proposal = world.propose("Ana works at Globex in the south office.")["proposal_id"]
    reply = world.approve(proposal, supersedes={"memory_id": first, "version": 1}, override_reason="x")
    second = reply.json["memory_id"]
    hold(world, second)
    assert world.call(READER, "GET", f"/v1/memories/{second}").status == 404
    assert second not in world.call(READER, "GET", f"/v1/memories/{first}/history").text
