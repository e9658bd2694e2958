"""A cursor is good for exactly the tenant, listing and filters it was made for."""

from uuid import UUID

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from remembrancer.adapters.keys import FileMacKeys
from remembrancer.domain.problems import Problem
from remembrancer.flows.cursors import MAX_CHARS, Cursors

TENANT = UUID("018f0000-0000-7000-8000-000000000001")
OTHER = UUID("018f0000-0000-7000-8000-000000000002")
FILTERS = {"status": "pending", "kind": None}
POSITION = ["2026-11-29T12:00:00.000001+00:00", "prop_1", 7, None]


@pytest.fixture(scope="module")
def cursors(tmp_path_factory):
    return Cursors(FileMacKeys(tmp_path_factory.mktemp("keys") / "mac.key"))


def refused(cursors, cursor, tenant=TENANT, listing="proposals", filters=FILTERS):
    with pytest.raises(Problem) as caught:
        cursors.decode(tenant, listing, filters, cursor)
    problem = caught.value
    assert problem.__cause__ is None
    return problem.code == "invalid_input" and [(e.pointer, e.code) for e in problem.errors] == [
        ("/cursor", "invalid_cursor")
    ]


@given(
    st.lists(
        st.text(st.characters(exclude_categories=["Cs"])) | st.integers() | st.none() | st.booleans(),
        max_size=4,
    )
)
def test_a_position_comes_back(cursors, position):
    cursor = cursors.encode(TENANT, "proposals", FILTERS, position)
    assert cursors.decode(TENANT, "proposals", dict(reversed(FILTERS.items())), cursor) == position
    assert set(cursor) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")


def test_another_tenant_listing_or_filter_refuses_it(cursors):
    cursor = cursors.encode(TENANT, "proposals", FILTERS, POSITION)
    assert cursors.decode(TENANT, "proposals", FILTERS, cursor) == POSITION
    assert refused(cursors, cursor, tenant=OTHER)
    assert refused(cursors, cursor, listing="memories")
    assert refused(cursors, cursor, filters=FILTERS | {"status": "approved"})
    assert refused(cursors, cursor, filters={"status": "pending"})
    assert refused(cursors, cursor, filters={})


def test_another_key_refuses_it(cursors, tmp_path):
    foreign = Cursors(FileMacKeys(tmp_path / "mac.key"))
    assert refused(cursors, foreign.encode(TENANT, "proposals", FILTERS, POSITION))


ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_+/= \n\x00é"


@given(st.integers(0), st.characters())
def test_any_other_character_refuses_it(cursors, place, character):
    cursor = cursors.encode(TENANT, "proposals", FILTERS, POSITION)
    place %= len(cursor)
    assume(character != cursor[place])
    assert refused(cursors, cursor[:place] + character + cursor[place + 1 :])


@pytest.mark.parametrize("length", range(4))
def test_every_spelling_but_one_is_refused(cursors, length):
    """All positions and all characters near base64; the lengths leave 0, 2 and 4 bits of the last one unused."""
    position = ["x" * length, "???>>>~~~"]
    cursor = cursors.encode(TENANT, "proposals", FILTERS, position)
    assert cursors.decode(TENANT, "proposals", FILTERS, cursor) == position
    for place in range(len(cursor) + 1):
        for character in ALPHABET:
            assert refused(cursors, cursor[:place] + character + cursor[place:])
            if character != cursor[place : place + 1]:
                assert refused(cursors, cursor[:place] + character + cursor[place + 1 :])


@given(st.text(max_size=60) | st.text("AZaz09-_=", max_size=60))
@example("")
@example("A" * 22)
@example("=" * 8)
@example("\ud800")
@example("A" * (MAX_CHARS + 1))
def test_garbage_is_refused(cursors, garbage):
    assert refused(cursors, garbage)


def test_a_shortened_cursor_is_refused(cursors):
    cursor = cursors.encode(TENANT, "proposals", FILTERS, POSITION)
    for length in range(len(cursor)):
        assert refused(cursors, cursor[:length])
