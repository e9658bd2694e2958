"""Typed values of relationships in one canonical text form, so that equal values compare equal."""

from __future__ import annotations

import re
import unicodedata
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation

from remembrancer.domain.invisible import strip_invisible

_NUMBER = re.compile(r"[+-]?(?:\d{1,60}(?:\.\d{1,60})?|\.\d{1,60})(?:[eE][+-]?\d{1,3})?")


def canonical_value(kind: str, value: str | bool | int | float) -> str:
    """The canonical text of a value of that type. Raises ValueError when it is not of the type.

    number: plain decimal without trailing zeros; boolean: true or false; date: ISO 8601;
    date_time: RFC 3339 in UTC; string: NFC, trimmed, without what nobody sees.
    """
    if kind == "boolean":
        if value in (True, "true"):
            return "true"
        if value in (False, "false"):
            return "false"
        raise ValueError("not a boolean")
    if isinstance(value, bool):
        raise ValueError("a boolean is not a value of this type")
    if kind == "number":
        return _number(str(value))
    if not isinstance(value, str):
        raise ValueError("must be a string")
    if kind == "date":
        return date.fromisoformat(value).isoformat()
    if kind == "date_time":
        instant = datetime.fromisoformat(value)
        if instant.tzinfo is None:
            raise ValueError("a date-time needs an offset")
        return instant.astimezone(UTC).isoformat().replace("+00:00", "Z")
    text = strip_invisible(unicodedata.normalize("NFC", value)).strip()
    if not text:
        raise ValueError("must not be blank")
    return text


def _number(text: str) -> str:
    if not _NUMBER.fullmatch(text):
        raise ValueError("not a decimal number")
    try:
        number = Decimal(text)
    except InvalidOperation:
        raise ValueError("not a decimal number") from None
    if number == 0:
        return "0"
    plain = format(number, "f")
    shortest = plain.rstrip("0").rstrip(".") if "." in plain else plain
    # What is stored is read again, by this function too.
    if not _NUMBER.fullmatch(shortest):
        raise ValueError("more than sixty digits before or after the point")
    return shortest
