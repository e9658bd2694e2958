"""An assessor's answer read strictly: every fault collected, nothing coerced, nothing guessed, nothing kept.

The answer is the whole text or nothing: JSON found inside prose or a code fence is not looked for. One fault
anywhere makes the whole answer invalid, so that no item of it is ever combined with another answer's.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NoReturn, TypeVar

from remembrancer.domain import assessment_schema as schema
from remembrancer.domain.assessment import (
    MAX_FINDINGS,
    MAX_ISSUES,
    MAX_SPLITS,
    MAX_SUPPORTS,
    Ambiguous,
    Assessment,
    AssessmentRequest,
    Chosen,
    Create,
    EvidenceVerdict,
    EvidenceView,
    Issue,
    MentionView,
    PredicateOption,
    PredicateView,
    ProposalVerdict,
    ProposalView,
    Register,
    Resolution,
    Reuse,
    SecurityFinding,
    Split,
    SupportSpan,
    ValueView,
)
from remembrancer.domain.grounding import MAX_QUOTE, occurrences
from remembrancer.domain.names import fold

MAX_ANSWER = 1_000_000
"""Code points of an answer that is read at all."""

Stop = Literal["complete", "truncated", "malformed", "blocked"]

_KEY = re.compile(r"[a-z][a-z0-9_]{0,63}")
_DETAILS = {
    "truncated": "The answer was cut off at the output limit; say it in fewer words, all of it.",
    "malformed": "The answer did not end as an answer does; give it again, as text.",
    "too_long": "The answer is longer than is read.",
    "not_json": "The answer must be one JSON object and nothing else: no prose, no code fence.",
    "too_deep": "The answer is nested too deeply.",
    "duplicate_member": "An object has the same member twice.",
    "not_object": "Must be an object.",
    "not_list": "Must be a list.",
    "not_text": "Must be a string.",
    "not_integer": "Must be an integer.",
    "missing": "A required member is missing.",
    "unknown_member": "The object has a member that is not part of the contract.",
    "not_allowed": "Must be one of the listed values.",
    "too_many": "The list has too many items.",
    "too_few": "The list has too few items.",
    "repeated": "The list has an item twice.",
    "unknown_ref": "No such reference was offered here.",
    "ref_repeated": "Each item is answered exactly once.",
    "evidence_missing": "An evidence item has no verdict.",
    "proposal_missing": "A proposal has no verdict.",
    "finding_missing": "A rejection names at least one kind and quote.",
    "finding_unexpected": "An item that passes has no findings.",
    "quote_not_found": "The quote is not in that evidence, character for character, as whole words.",
    "quote_empty": "The quote is blank or too long.",
    "occurrence_not_found": "The quote does not come that many times.",
    "support_repeated": "The same span supports this split twice.",
    "support_not_cited": "A support lies in evidence that the proposal cites.",
    "splits_missing": "A stored proposal has at least one split.",
    "splits_unexpected": "A proposal that is not supported has no splits.",
    "split_repeated": "Two splits of a proposal are the same relationship.",
    "ambiguous_alone": "An ambiguous entity makes the only split of its proposal.",
    "ambiguous_nothing": "Nothing was offered that the name could be confused with; create it.",
    "entity_missing": "Reuse names an offered entity.",
    "entity_unexpected": "Only reuse names an entity.",
    "entity_required": "The proposal fixes this entity; reuse it.",
    "entity_exists": "An offered entity of this kind bears this name; reuse it or call it ambiguous.",
    "entity_kind": "The entity is of another kind than the mention.",
    "name_differs": "The name must be the proposal's, character for character.",
    "object_differs": "The object must be of the proposal's form: an entity or a value.",
    "value_differs": "The value must be the proposal's, character for character.",
    "polarity_differs": "The polarity must be the proposal's.",
    "validity_differs": "The validity must be the proposal's, character for character.",
    "predicate_choice": "Exactly one of choose and register.",
    "predicate_required": "The proposal fixes this predicate; choose it.",
    "predicate_exact": "An offered predicate has the proposed key or alias; choose it.",
    "predicate_exists": "An active predicate has this key or alias; choose it where it is offered.",
    "predicate_key": "A key is snake_case of at most 64 characters, beginning with a letter.",
    "predicate_kinds": "The predicate does not take a subject or an object of this kind; if no other may be chosen,"
    " the proposal is not supported.",
    "predicate_contradicts": "The same key is registered differently elsewhere in the answer.",
}

_Item = TypeVar("_Item")


def validate(
    request: AssessmentRequest, answer_text: str, stop: Stop = "complete"
) -> Assessment | tuple[Issue, ...]:
    """The assessment, or what is wrong with the answer: 1 to 100 issues in the order of the answer.

    Complete: a fault in one place hides none in another. An answer that was cut off, or ended otherwise, is
    never read. `blocked` is the caller's to handle (domain/ports.Answer) and counts as an answer that is not JSON here.
    """
    issues = _Issues()
    if stop in ("truncated", "malformed"):
        issues.add("", stop)
        return issues.first()
    document = _parse(answer_text, issues)
    if document is None:
        return issues.first()
    made = _Reader(request, issues).read(document)
    return made if made is not None and not issues.found else issues.first()


class _Issues:
    def __init__(self) -> None:
        self.found: list[Issue] = []

    def add(self, pointer: str, code: str) -> None:
        if len(self.found) < MAX_ISSUES:
            self.found.append(Issue(pointer, code, _DETAILS[code]))

    def first(self) -> tuple[Issue, ...]:
        return tuple(self.found)


class _DuplicateMember(Exception):
    pass


def _parse(text: str, issues: _Issues) -> Any:
    """The JSON value, or None after an issue. Strict: no duplicate members, NaN or Infinity."""
    if len(text) > MAX_ANSWER:
        issues.add("", "too_long")
        return None
    try:
        document = json.loads(text, object_pairs_hook=_members, parse_constant=_no_constant)
    except _DuplicateMember:
        issues.add("", "duplicate_member")
        return None
    except RecursionError:
        issues.add("", "too_deep")
        return None
    except ValueError:
        issues.add("", "not_json")
        return None
    if document is None:
        issues.add("", "not_object")
    return document


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise _DuplicateMember
    return members


def _no_constant(_: str) -> NoReturn:
    raise ValueError("not JSON")


@dataclass
class _Reader:
    """Walks the answer once. A method returns None when its part cannot be read, having added the issue."""

    request: AssessmentRequest
    issues: _Issues
    places: dict[tuple[str, str], list[int]] = field(default_factory=dict)
    registered: dict[str, Register] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.evidence = {view.ref: view for view in self.request.evidence}
        self.proposals = {view.ref: view for view in self.request.proposals}
        self.active = {
            fold(name)
            for view in self.request.proposals
            for option in view.predicate.options
            for name in (option.key, *option.aliases)
        }

    def read(self, document: Any) -> Assessment | None:
        members = self._object(document, "", ("evidence", "proposals"))
        if members is None:
            return None
        evidence = self._covering(members, "evidence", self.evidence, self._evidence, "evidence_missing")
        proposals = self._covering(members, "proposals", self.proposals, self._proposal, "proposal_missing")
        return Assessment(
            tuple(evidence[ref] for ref in self.evidence if ref in evidence),
            tuple(proposals[ref] for ref in self.proposals if ref in proposals),
        )

    def _covering(
        self,
        members: dict[str, Any],
        name: str,
        wanted: Mapping[str, Any],
        read: Callable[[dict[str, Any], str, Any], _Item | None],
        missing: str,
    ) -> dict[str, _Item]:
        """One readable item for each wanted ref, exactly once."""
        made: dict[str, _Item] = {}
        seen: set[str] = set()
        for at, item in self._items(members, name, "", 0, len(wanted) + MAX_ISSUES):
            if not isinstance(item, dict):
                self.issues.add(at, "not_object")
                continue
            ref = self._text(item, "ref", at)
            if ref is None:
                continue
            if ref not in wanted:
                self.issues.add(f"{at}/ref", "unknown_ref")
                continue
            if ref in seen:
                self.issues.add(f"{at}/ref", "ref_repeated")
            seen.add(ref)
            verdict = read(item, at, wanted[ref])
            if verdict is not None:
                made[ref] = verdict
        if isinstance(members.get(name), list):
            for ref in wanted:
                if ref not in seen:
                    self.issues.add(f"/{name}", missing)
        return made

    def _evidence(self, item: dict[str, Any], at: str, view: EvidenceView) -> EvidenceVerdict | None:
        self._object(item, at, ("ref", "security", "findings", "duplicate"))
        security = self._choice(item, "security", at, schema.SECURITY)
        findings = [
            finding
            for place, entry in self._items(item, "findings", at, 0, MAX_FINDINGS)
            if (finding := self._finding(entry, place, view)) is not None
        ]
        if isinstance(item.get("findings"), list):
            if security == "reject" and not item["findings"]:
                self.issues.add(f"{at}/findings", "finding_missing")
            if security == "pass" and item["findings"]:
                self.issues.add(f"{at}/findings", "finding_unexpected")
        duplicate = self._text(item, "duplicate", at)
        offered = {option.ref for option in view.duplicates}
        if duplicate is not None and duplicate != schema.NEW and duplicate not in offered:
            self.issues.add(f"{at}/duplicate", "unknown_ref")
        chosen = None if duplicate == schema.NEW else duplicate
        return EvidenceVerdict(view.ref, security == "reject", tuple(findings), chosen)

    def _finding(self, entry: Any, at: str, view: EvidenceView) -> SecurityFinding | None:
        if self._object(entry, at, ("kind", "quote", "occurrence")) is None:
            return None
        kind = self._choice(entry, "kind", at, schema.FINDING_KINDS)
        span = self._span(entry, at, view)
        return SecurityFinding(kind, *span) if kind is not None and span is not None else None  # type: ignore[arg-type]

    def _proposal(self, item: dict[str, Any], at: str, view: ProposalView) -> ProposalVerdict | None:
        self._object(item, at, ("ref", "disposition", "splits"))
        disposition = self._choice(item, "disposition", at, schema.DISPOSITIONS)
        listed = item.get("splits")
        splits: list[Split] = []
        for place, entry in self._items(item, "splits", at, 0, MAX_SPLITS):
            split = self._split(entry, place, view)
            if split is None:
                continue
            if any(_same(split, other) for other in splits):
                self.issues.add(place, "split_repeated")
            splits.append(split)
        if isinstance(listed, list):
            if disposition == "stored" and not listed:
                self.issues.add(f"{at}/splits", "splits_missing")
            if disposition == "not_supported" and listed:
                self.issues.add(f"{at}/splits", "splits_unexpected")
            unclear = any(
                isinstance(end, Ambiguous) for split in splits for end in (split.subject, split.object)
            )
            if unclear and len(listed) > 1:
                self.issues.add(f"{at}/splits", "ambiguous_alone")
        return ProposalVerdict(view.ref, disposition == "stored", tuple(splits))

    def _split(self, entry: Any, at: str, view: ProposalView) -> Split | None:
        names = ("subject", "predicate", "object", "polarity", "valid_from", "valid_to", "supports")
        if self._object(entry, at, names) is None:
            return None
        subject = self._subject(entry.get("subject"), f"{at}/subject", view.subject)
        target = self._target(entry.get("object"), f"{at}/object", view.object)
        predicate = self._predicate(entry.get("predicate"), f"{at}/predicate", view.predicate)
        polarity = self._choice(entry, "polarity", at, ("+", "-"))
        if polarity is not None and polarity != view.polarity:
            self.issues.add(f"{at}/polarity", "polarity_differs")
        for name, given in (("valid_from", view.valid_from), ("valid_to", view.valid_to)):
            if name in entry and entry[name] != given:
                self.issues.add(f"{at}/{name}", "validity_differs")
        supports = self._supports(entry, at, view)
        if subject is None or target is None or predicate is None:
            return None
        self._check_kinds(predicate, subject, target, view, f"{at}/predicate")
        return Split(subject, None if target == "value" else target, predicate, supports)

    def _subject(self, entry: Any, at: str, mention: MentionView) -> Resolution | None:
        if self._object(entry, at, ("resolution", "entity", "name")) is None:
            return None
        resolution = self._choice(entry, "resolution", at, schema.ENTITY_RESOLUTIONS)
        return None if resolution is None else self._entity(entry, at, resolution, mention)

    def _target(
        self, entry: Any, at: str, view: MentionView | ValueView
    ) -> Resolution | Literal["value"] | None:
        if self._object(entry, at, ("resolution", "entity", "name", "value")) is None:
            return None
        resolution = self._choice(entry, "resolution", at, schema.OBJECT_RESOLUTIONS)
        if resolution is None:
            return None
        if (resolution == "value") != isinstance(view, ValueView):
            self.issues.add(f"{at}/resolution", "object_differs")
            return None
        if isinstance(view, MentionView):
            if entry.get("value") is not None:
                self.issues.add(f"{at}/value", "object_differs")
            return self._entity(entry, at, resolution, view)
        for name in ("entity", "name"):
            if entry.get(name) is not None:
                self.issues.add(f"{at}/{name}", "object_differs")
        if "value" in entry and entry["value"] != view.text:
            self.issues.add(f"{at}/value", "value_differs")
        return "value"

    def _entity(
        self, entry: dict[str, Any], at: str, resolution: str, mention: MentionView
    ) -> Resolution | None:
        if "name" in entry and entry["name"] != mention.name:
            self.issues.add(f"{at}/name", "name_differs")
        ref = entry.get("entity")
        if resolution == "reuse":
            return self._reuse(ref, at, mention)
        if ref is not None:
            self.issues.add(f"{at}/entity", "entity_unexpected")
        if mention.required is not None:
            self.issues.add(f"{at}/resolution", "entity_required")
        if resolution == "create":
            if any(fits(mention, option.kind) for option in mention.options):
                self.issues.add(f"{at}/resolution", "entity_exists")
            return Create()
        if not mention.options:
            self.issues.add(f"{at}/resolution", "ambiguous_nothing")
        return Ambiguous()

    def _reuse(self, ref: Any, at: str, mention: MentionView) -> Resolution | None:
        if not isinstance(ref, str):
            self.issues.add(f"{at}/entity", "entity_missing")
            return None
        option = next((option for option in mention.options if option.ref == ref), None)
        if option is None:
            self.issues.add(f"{at}/entity", "unknown_ref")
            return None
        if mention.required is not None and ref != mention.required:
            self.issues.add(f"{at}/entity", "entity_required")
        elif mention.required is None and not fits(mention, option.kind):
            self.issues.add(f"{at}/entity", "entity_kind")
        return Reuse(ref)

    def _predicate(self, entry: Any, at: str, view: PredicateView) -> Chosen | Register | None:
        if self._object(entry, at, ("choose", "register")) is None:
            return None
        ref, form = entry.get("choose"), entry.get("register")
        if (ref is None) == (form is None):
            self.issues.add(at, "predicate_choice")
            return None
        if ref is not None:
            return self._choose(ref, f"{at}/choose", view)
        if view.required is not None:
            self.issues.add(f"{at}/register", "predicate_required")
        elif exact_options(view):
            self.issues.add(f"{at}/register", "predicate_exact")
        return self._register(form, f"{at}/register")

    def _choose(self, ref: Any, at: str, view: PredicateView) -> Chosen | None:
        if not isinstance(ref, str) or ref not in {option.ref for option in view.options}:
            self.issues.add(at, "unknown_ref")
            return None
        if view.required is not None and ref != view.required:
            self.issues.add(at, "predicate_required")
        exact = exact_options(view)
        if view.required is None and exact and ref not in {option.ref for option in exact}:
            self.issues.add(at, "predicate_exact")
        return Chosen(ref)

    def _register(self, form: Any, at: str) -> Register | None:
        names = ("key", "kind", "cardinality", "subject_kinds", "object_kinds")
        if self._object(form, at, names) is None:
            return None
        key = self._text(form, "key", at)
        if key is not None and not _KEY.fullmatch(key):
            self.issues.add(f"{at}/key", "predicate_key")
            key = None
        if key is not None and fold(key) in self.active:
            self.issues.add(f"{at}/key", "predicate_exists")
        kind = self._choice(form, "kind", at, schema.PREDICATE_KINDS)
        cardinality = self._choice(form, "cardinality", at, schema.CARDINALITIES)
        subjects = self._kinds(form, "subject_kinds", at, schema.ENTITY_KINDS)
        objects = self._kinds(form, "object_kinds", at, schema.OBJECT_KINDS)
        if key is None or kind is None or cardinality is None or subjects is None or objects is None:
            return None
        made = Register(key, kind, cardinality, subjects, objects)  # type: ignore[arg-type]
        if self.registered.setdefault(key, made) != made:
            self.issues.add(at, "predicate_contradicts")
        return made

    def _kinds(
        self, form: dict[str, Any], name: str, at: str, allowed: Sequence[str]
    ) -> tuple[str, ...] | None:
        """Sorted, since their order says nothing."""
        kinds: list[str] = []
        for place, kind in self._items(form, name, at, 0, len(allowed)):
            if not isinstance(kind, str) or kind not in allowed:
                self.issues.add(place, "not_allowed")
            elif kind in kinds:
                self.issues.add(place, "repeated")
            else:
                kinds.append(kind)
        return tuple(sorted(kinds)) if isinstance(form.get(name), list) else None

    def _check_kinds(
        self,
        predicate: Chosen | Register,
        subject: Resolution,
        target: Resolution | Literal["value"],
        view: ProposalView,
        at: str,
    ) -> None:
        taken: PredicateOption | Register
        if isinstance(predicate, Chosen):
            taken = next(option for option in view.predicate.options if option.ref == predicate.ref)
        else:
            taken = predicate
        if not takes(taken.subject_kinds, _kind_of(subject, view.subject)) or not takes(
            taken.object_kinds, _kind_of(target, view.object)
        ):
            self.issues.add(at, "predicate_kinds")

    def _supports(self, split: dict[str, Any], at: str, view: ProposalView) -> tuple[SupportSpan, ...]:
        supports: list[SupportSpan] = []
        for place, entry in self._items(split, "supports", at, 1, MAX_SUPPORTS):
            if self._object(entry, place, ("evidence", "quote", "occurrence")) is None:
                continue
            ref = self._text(entry, "evidence", place)
            if ref is None:
                continue
            if ref not in self.evidence:
                self.issues.add(f"{place}/evidence", "unknown_ref")
                continue
            if ref not in view.evidence:
                self.issues.add(f"{place}/evidence", "support_not_cited")
            span = self._span(entry, place, self.evidence[ref])
            if span is None:
                continue
            support = SupportSpan(ref, *span)
            if support in supports:
                self.issues.add(place, "support_repeated")
            supports.append(support)
        return tuple(supports)

    def _span(self, entry: dict[str, Any], at: str, view: EvidenceView) -> tuple[int, int] | None:
        quote = self._text(entry, "quote", at)
        time = entry.get("occurrence")
        if "occurrence" in entry and type(time) is not int:
            self.issues.add(f"{at}/occurrence", "not_integer")
        if quote is None:
            return None
        if not quote.strip() or len(quote) > MAX_QUOTE:
            self.issues.add(f"{at}/quote", "quote_empty")
            return None
        # One look a quote, however often an answer repeats it.
        if (view.ref, quote) not in self.places:
            self.places[view.ref, quote] = occurrences(view.text, quote)
        places = self.places[view.ref, quote]
        if not places:
            self.issues.add(f"{at}/quote", "quote_not_found")
            return None
        if type(time) is not int:
            return None
        if not 1 <= time <= len(places):
            self.issues.add(f"{at}/occurrence", "occurrence_not_found")
            return None
        return places[time - 1], places[time - 1] + len(quote)

    def _object(self, value: Any, at: str, names: Sequence[str]) -> dict[str, Any] | None:
        """`value` when it is an object; its missing and unknown members are issues, but it is read on."""
        if not isinstance(value, dict):
            self.issues.add(at, "not_object")
            return None
        for name in names:
            if name not in value:
                self.issues.add(at, "missing")
        if not value.keys() <= set(names):
            self.issues.add(at, "unknown_member")
        return value

    def _items(
        self, members: dict[str, Any], name: str, at: str, least: int, most: int
    ) -> Iterator[tuple[str, Any]]:
        """(pointer, item) of a list member. An absent one is an issue of the object already."""
        if name not in members:
            return
        value, at = members[name], f"{at}/{name}"
        if not isinstance(value, list):
            self.issues.add(at, "not_list")
            return
        if len(value) < least:
            self.issues.add(at, "too_few")
        if len(value) > most:
            self.issues.add(at, "too_many")
        for index, item in enumerate(value[:most]):
            yield f"{at}/{index}", item

    def _text(self, members: dict[str, Any], name: str, at: str) -> str | None:
        value = members.get(name)
        if isinstance(value, str):
            return value
        if name in members:
            self.issues.add(f"{at}/{name}", "not_text")
        return None

    def _choice(self, members: dict[str, Any], name: str, at: str, allowed: Sequence[str]) -> str | None:
        value = members.get(name)
        if isinstance(value, str) and value in allowed:
            return value
        if name in members:
            self.issues.add(f"{at}/{name}", "not_allowed")
        return None


def fits(mention: MentionView, kind: str) -> bool:
    """Whether an entity of `kind` can be what is mentioned; `other` means any kind, on both sides."""
    return "other" in (mention.kind, kind) or mention.kind == kind


def takes(kinds: Sequence[str], kind: str | None) -> bool:
    """Whether a predicate of these endpoint kinds takes one of `kind`; None is not known yet."""
    return not kinds or kind in (None, "other") or kind in kinds


def exact_options(view: PredicateView) -> tuple[PredicateOption, ...]:
    """The options whose key is the proposed one, or else those that have it as an alias."""
    if view.proposed_key is None:
        return ()
    exact = tuple(option for option in view.options if option.key == view.proposed_key)
    return exact or tuple(option for option in view.options if view.proposed_key in option.aliases)


def _kind_of(end: Resolution | Literal["value"], view: MentionView | ValueView) -> str | None:
    if isinstance(view, ValueView):
        return view.type
    if isinstance(end, Reuse):
        return next(option.kind for option in view.options if option.ref == end.ref)
    return view.kind if isinstance(end, Create) else None


def _same(a: Split, b: Split) -> bool:
    return (a.subject, a.object, a.predicate) == (b.subject, b.object, b.predicate)
