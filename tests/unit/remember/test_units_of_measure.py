"""The table of units against a library that has them all; values compare equal in whatever unit they were said."""

from __future__ import annotations

from decimal import Context, Decimal

import pint
import pytest
from hypothesis import given
from hypothesis import strategies as st

from remembrancer.domain.units import UNITS, in_base_unit
from remembrancer.domain.values import canonical_value

REGISTRY: pint.UnitRegistry[Decimal] = pint.UnitRegistry(non_int_type=Decimal)


@pytest.mark.parametrize("name", UNITS)
def test_each_name_is_what_the_library_says(name: str) -> None:
    base, factor = UNITS[name]
    said = REGISTRY.Quantity(Decimal(1), REGISTRY.parse_units(name))
    ours = REGISTRY.Quantity(factor, REGISTRY.parse_units(base))
    assert said.to_base_units().units == ours.to_base_units().units
    assert said.to_base_units().magnitude == ours.to_base_units().magnitude


def test_every_factor_is_exact_in_the_digits_that_are_kept() -> None:
    assert max(len(factor.as_tuple().digits) for _, factor in UNITS.values()) <= 16


@pytest.mark.parametrize(
    ("one", "other"),
    [(("5", "km"), ("5000", "Metres")), (("90", "min"), ("1.5", "hours")), (("0.5", "kg"), ("500", "g"))],
)
def test_the_same_in_another_unit(one: tuple[str, str], other: tuple[str, str]) -> None:
    assert in_base_unit(*one) == in_base_unit(*other)


@pytest.mark.parametrize("unit", ["USD", "people", "points", "mM", "Mm", "KM", "", "ｋｍ", "1" * 64])
def test_what_is_not_known_keeps_its_name(unit: str) -> None:
    assert in_base_unit("7", unit) == ("7", unit)


@given(
    st.from_regex(r"-?[0-9]{1,40}(\.[0-9]{1,40})?([eE][+-]?[0-9])?", fullmatch=True),
    st.sampled_from(sorted(UNITS)),
)
def test_no_digit_is_lost(number: str, unit: str) -> None:
    canonical = canonical_value("number", number)
    found, base = in_base_unit(canonical, unit)
    exact = Context(prec=2 * len(canonical) + 40)
    assert exact.multiply(Decimal(canonical), UNITS[unit][1]) == Decimal(found)
    assert base == UNITS[unit][0]
    assert "e" not in found.lower() and not (("." in found) and found.endswith("0"))
