"""The canonical text of a typed value is itself a value of that type."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remembrancer.domain.units import in_base_unit
from remembrancer.domain.values import canonical_value


@given(
    st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.decimals(allow_nan=False, allow_infinity=False).map(str)
)
def test_a_number_keeps_its_value_and_reads_back(number: int | float | str) -> None:
    try:
        text = canonical_value("number", number)
    except ValueError:
        assert len(format(Decimal(str(number)), "f")) > 60
        return
    assert Decimal(text) == Decimal(str(number))
    assert canonical_value("number", text) == text


@pytest.mark.parametrize("number", [1e300, 1e-300, "1e999", "-1E-999"])
def test_a_number_that_cannot_be_read_back_is_refused(number: float | str) -> None:
    with pytest.raises(ValueError):
        canonical_value("number", number)


def test_texts_and_units_that_look_the_same_are_the_same() -> None:
    assert canonical_value("string", " gre\u200ben\u2060") == canonical_value("string", "green")
    assert in_base_unit("5", "k\u200bm") == in_base_unit("5", "km")
