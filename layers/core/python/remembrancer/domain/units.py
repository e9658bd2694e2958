"""Units of measure in one form, so that 5 km and 5000 m are the same value.

The factors are exact by definition (SI brochure, 9th edition; the international yard and pound of 1959). The table
is small on purpose: a test compares every name of it with `pint`, which is too large to be deployed beside the model.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from decimal import Context, Decimal
from types import MappingProxyType

from remembrancer.domain.invisible import strip_invisible

_TABLE = """
meter: mm .001 millimeter millimeters millimetre millimetres | cm .01 centimeter centimeters centimetre centimetres
  | m 1 meter meters metre metres | km 1000 kilometer kilometers kilometre kilometres
  | inch .0254 inches | ft .3048 foot feet | yd .9144 yard yards | mi 1609.344 mile miles
kilogram: mg .000001 milligram milligrams | g .001 gram grams | kg 1 kilogram kilograms
  | t 1000 tonne tonnes | oz .028349523125 ounce ounces | lb .45359237 lbs pound pounds
second: ms .001 millisecond milliseconds | s 1 sec second seconds | min 60 minute minutes
  | h 3600 hr hrs hour hours | day 86400 days | week 604800 weeks
byte: byte 1 bytes | kB 1000 kilobyte kilobytes | MB 1000000 megabyte megabytes | GB 1000000000 gigabyte gigabytes
  | TB 1000000000000 terabyte terabytes | KiB 1024 kibibyte | MiB 1048576 mebibyte | GiB 1073741824 gibibyte
liter: ml .001 mL milliliter milliliters millilitre millilitres | l 1 L liter liters litre litres
meter ** 2: m² 1 m^2 | km² 1000000 km^2 | ha 10000 hectare hectares
hertz: Hz 1 hertz | kHz 1000 kilohertz | MHz 1000000 megahertz | GHz 1000000000 gigahertz
watt: W 1 watt watts | kW 1000 kilowatt kilowatts | MW 1000000 megawatt megawatts
kilowatt_hour: kWh 1 | MWh 1000
percent: % 1 percent
"""


def _read(table: str) -> Mapping[str, tuple[str, Decimal]]:
    """(base unit, factor) by name. A symbol means what its case says; a word is one in any case."""
    units: dict[str, tuple[str, Decimal]] = {}
    for line in table.replace("\n  |", " |").strip().splitlines():
        base, _, entries = line.partition(":")
        for entry in entries.split("|"):
            symbol, factor, *names = entry.split()
            units |= {name: (base, Decimal(factor)) for name in (symbol, *names)}
    return MappingProxyType(units)


UNITS = _read(_TABLE)
_FACTOR_DIGITS = 16


def in_base_unit(number: str, unit: str | None) -> tuple[str, str | None]:
    """A plain decimal and its unit in the unit's base; a unit that is not known keeps its name (NFC, trimmed,
    without what nobody sees)."""
    if unit is None:
        return number, None
    name = strip_invisible(unicodedata.normalize("NFC", unit)).strip()
    found = UNITS.get(name) or (UNITS.get(name.lower()) if len(name) > 3 else None)
    if found is None:
        return number, name
    base, factor = found
    product = Context(prec=len(number) + _FACTOR_DIGITS).multiply(Decimal(number), factor)
    plain = format(product, "f")
    return (plain.rstrip("0").rstrip(".") if "." in plain else plain), base


def as_kept(number: str, written: str, unit: str | None) -> tuple[str, str | None, str]:
    """A plain decimal, its unit, and how it was written, with the unit when that is not the one it is kept in."""
    base, kept = in_base_unit(number, unit)
    return base, kept, written if kept == unit else f"{written} {unit}"
