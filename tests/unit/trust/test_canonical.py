"""Canonical bytes: stable over order and zone, different for every difference of meaning."""

import hashlib
import json
import math
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remembrancer.domain import canonical

ATOMS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(-2, 2)
    | st.text()
    | st.binary()
    | st.sampled_from(["", "1", "a", b"", b"1", b"a"])
    | st.datetimes(timezones=st.just(UTC))
)
VALUES = st.recursive(
    ATOMS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4)
)
RECORDS = st.dictionaries(st.text(max_size=3), VALUES, max_size=4)


def typed(value):
    """A form whose equality is equality of type and value (in Python True == 1)."""
    if isinstance(value, dict):
        return ("dict", frozenset((name, typed(item)) for name, item in value.items()))
    if isinstance(value, list):
        return ("list", tuple(typed(item) for item in value))
    return (type(value).__name__, value)


@given(RECORDS, RECORDS)
def test_two_records_share_bytes_exactly_when_they_are_equal(left, right):
    assert (canonical.encode(left) == canonical.encode(right)) == (typed(left) == typed(right))


@given(RECORDS)
def test_the_order_of_fields_does_not_matter(record):
    backwards = list(reversed(record.items()))
    assert canonical.encode(backwards) == canonical.encode(record)
    assert canonical.digest(backwards) == hashlib.sha256(canonical.encode(record)).digest()


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ({"a": 1}, {"a": True}),
        ({"a": 1}, {"a": "1"}),
        ({"a": "1"}, {"a": b"1"}),
        ({"a": None}, {}),
        ({"a": None}, {"a": ""}),
        ({"a": None}, {"a": []}),
        ({"a": []}, {"a": {}}),
        ({"a": "bc", "d": ""}, {"a": "b", "d": "c"}),
        ({"a": ["b", "c"]}, {"a": ["bc"]}),
        ({"a": [["b"], "c"]}, {"a": [["b", "c"]]}),
        ({"a": {"b": "c"}}, {"a": ["b", "c"]}),
        ({"\u00e9": 1}, {"e\u0301": 1}),
        ({"a": 0}, {"a": -1}),
        ({"a": 255}, {"a": -1}),
    ],
)
def test_near_records_differ(left, right):
    assert canonical.digest(left) != canonical.digest(right)


@given(st.datetimes(min_value=datetime(1900, 1, 1), max_value=datetime(2200, 1, 1)), st.integers(-14, 14))
def test_an_instant_has_one_form_in_every_zone(naive, hours):
    utc = naive.replace(tzinfo=UTC)
    elsewhere = utc.astimezone(timezone(timedelta(hours=hours)))
    assert canonical.encode({"at": utc}) == canonical.encode({"at": elsewhere})


def test_a_microsecond_counts():
    at = datetime(2026, 11, 29, 12, 0, 0, 1, tzinfo=UTC)
    assert canonical.digest({"at": at}) != canonical.digest({"at": at + timedelta(microseconds=1)})
    assert canonical.microseconds(datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)) == -1


def test_the_layout_is_frozen():
    """Stored digests outlive the code: a change of layout must be a new version, never an accident."""
    record = [("b", [1, None, True]), ("a", "é"), ("t", datetime(2026, 1, 1, tzinfo=UTC))]
    at = (1_767_225_600 * 1_000_000).to_bytes(8, "big").hex()
    assert canonical.encode(record).hex() == (
        "640000003c"
        + ("7300000001" + "61" + "7300000002" + "c3a9")
        + ("7300000001" + "62" + "6c00000011" + "690000000101" + "6e00000000" + "620000000101")
        + ("7300000001" + "74" + "7400000008" + at)
    )


@pytest.mark.parametrize(
    ("value", "error"),
    [
        (1.0, TypeError),
        (object(), TypeError),
        ({1: "a"}, TypeError),
        ("\ud800", ValueError),
        (datetime(2026, 1, 1), ValueError),
        (math.nan, TypeError),
    ],
)
def test_what_has_no_canonical_form_is_refused(value, error):
    with pytest.raises(error):
        canonical.encode({"a": value})


def test_a_repeated_name_is_refused():
    with pytest.raises(ValueError, match="repeated"):
        canonical.encode([("a", 1), ("a", 1)])


def test_deep_nesting_is_refused_without_exhausting_the_stack():
    value: list = []
    for _ in range(100_000):
        value = [value]
    with pytest.raises(ValueError, match="deeply"):
        canonical.encode({"a": value})


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4),
)


@given(JSON)
def test_canonical_json_reads_back_and_ignores_the_order_of_keys(value):
    text = canonical.canonical_json(value)
    assert json.loads(text) == value
    assert canonical.canonical_json(json.loads(text)) == text
    if isinstance(value, dict):
        assert canonical.canonical_json(dict(reversed(value.items()))) == text


def test_canonical_json_is_compact_and_unescaped():
    assert canonical.canonical_json({"b": [1, "é"], "a": None}) == '{"a":null,"b":[1,"é"]}'
    with pytest.raises(ValueError, match="JSON compliant"):
        canonical.canonical_json({"a": math.inf})
