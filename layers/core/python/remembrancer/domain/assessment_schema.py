"""The form of an assessor's answer, as the JSON Schema that a provider constrains its model with.

Only what every provider's strict mode understands: closed objects, all members required, enumerations,
`anyOf` with null; bounds and references are checked by domain/assessment_validation.py, which trusts none of
this. The words are part of the prompt version.
"""

from __future__ import annotations

from typing import Any, Final, get_args

from remembrancer.domain.assessment import Cardinality, FindingKind, ObjectKind, PredicateKind
from remembrancer.domain.requests import EntityKind

ENTITY_KINDS: Final[tuple[str, ...]] = get_args(EntityKind)
OBJECT_KINDS: Final[tuple[str, ...]] = get_args(ObjectKind)
FINDING_KINDS: Final[tuple[str, ...]] = get_args(FindingKind)
PREDICATE_KINDS: Final[tuple[str, ...]] = get_args(PredicateKind)
CARDINALITIES: Final[tuple[str, ...]] = get_args(Cardinality)
SECURITY: Final = ("pass", "reject")
DISPOSITIONS: Final = ("stored", "not_supported")
ENTITY_RESOLUTIONS: Final = ("reuse", "create", "ambiguous")
OBJECT_RESOLUTIONS: Final = (*ENTITY_RESOLUTIONS, "value")
NEW: Final = "new"
"""The duplicate choice of evidence that no candidate says already."""


def _object(**members: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": members,
        "required": list(members),
        "additionalProperties": False,
    }


def _list(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


def _one_of(values: tuple[str, ...]) -> dict[str, Any]:
    return {"type": "string", "enum": list(values)}


def _or_null(schema: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": [schema, {"type": "null"}]}


_TEXT: dict[str, Any] = {"type": "string"}
_QUOTE = {"quote": _TEXT, "occurrence": {"type": "integer"}}

ANSWER_SCHEMA: Final[dict[str, Any]] = _object(
    evidence=_list(
        _object(
            ref=_TEXT,
            security=_one_of(SECURITY),
            findings=_list(_object(kind=_one_of(FINDING_KINDS), **_QUOTE)),
            duplicate=_TEXT,
        )
    ),
    proposals=_list(
        _object(
            ref=_TEXT,
            disposition=_one_of(DISPOSITIONS),
            splits=_list(
                _object(
                    subject=_object(
                        resolution=_one_of(ENTITY_RESOLUTIONS), entity=_or_null(_TEXT), name=_TEXT
                    ),
                    predicate=_object(
                        choose=_or_null(_TEXT),
                        register=_or_null(
                            _object(
                                key=_TEXT,
                                kind=_one_of(PREDICATE_KINDS),
                                cardinality=_one_of(CARDINALITIES),
                                subject_kinds=_list(_one_of(ENTITY_KINDS)),
                                object_kinds=_list(_one_of(OBJECT_KINDS)),
                            )
                        ),
                    ),
                    object=_object(
                        resolution=_one_of(OBJECT_RESOLUTIONS),
                        entity=_or_null(_TEXT),
                        name=_or_null(_TEXT),
                        value=_or_null(_TEXT),
                    ),
                    polarity=_one_of(("+", "-")),
                    valid_from=_or_null(_TEXT),
                    valid_to=_or_null(_TEXT),
                    supports=_list(_object(evidence=_TEXT, **_QUOTE)),
                )
            ),
        )
    ),
)
