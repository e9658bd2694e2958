"""The retrieval legs and the neighbours of a candidate: filters inside the search, visibility written once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import product
from typing import TYPE_CHECKING, Any
from uuid import UUID

from remembrancer.domain.terms import Phrase, scoped
from remembrancer.store import terms, visibility
from remembrancer.store.database import Row, Unit
from remembrancer.store.vectors import vector_text

if TYPE_CHECKING:
    from remembrancer.domain.ports import Vectors


def neighbours(unit: Unit, space_id: UUID, vectors: Vectors, contract: str, limit: int) -> list[Row]:
    """The live memories of one space nearest to any of the passages: {memory_id, version, content, valid_from,
    valid_to, cosine}, nearest first, at most `limit`. Cosine is the maximum over passages of both sides."""
    found: dict[UUID, Row] = {}
    for vector in vectors:
        for row in unit.rows(
            f"""
            select m.memory_id, v.version, m.content, m.title, v.valid_from, v.valid_to,
                   1 - (p.embedding <=> %(vector)s::halfvec) as cosine
            from passage p {visibility.JOIN}
            where p.tenant_id = %(tenant)s and p.space_id = %(space)s and p.contract = %(contract)s
              and {visibility.live()}
            order by p.embedding <=> %(vector)s::halfvec limit %(limit)s
            """,
            {
                "vector": vector_text(vector),
                "tenant": unit.tenant_id,
                "space": space_id,
                "contract": contract,
                "limit": limit,
                **visibility.view(unit.principal.settings, unit.now),
            },
        ):
            best = found.get(row["memory_id"])
            if best is None or row["cosine"] > best["cosine"]:
                found[row["memory_id"]] = row
    return sorted(found.values(), key=lambda row: (-row["cosine"], row["memory_id"]))[:limit]


EXACT_MAX = 4_000
"""Up to so many memories that pass the filters, every one is compared; above, the indexes choose the candidates.
Where the two cost the same by bench/scale.py: exact is cheaper at 3,000, a third of the price indexed at 10,000."""
CANDIDATE_PASSAGES = 2_000
"""About how many passages the term index may bring: the rarest words of the query choose them."""
REACH = 3
"""A candidate's score depends on so many passages before and after it in its source."""
NEAR = 12
"""How many of the best of each leg bring what lies around them."""
EF_SEARCH = 200
MAX_SCANNED, SCAN_MEMORY = 200_000, 8
"""Tuples of the vector index that a search may go through, and its memory in multiples of work_mem: by pgvector's own
limits (20,000, 1) it gives up before it comes to the few that may be shown among many that may not."""
WRITTEN_OUT = 64
"""Up to so many terms of a query are written out in its statement."""

K1, B = 1.2, 0.75
"""BM25 with its usual constants (Robertson and Zaragoza 2009, eq. 3.15 with the idf of Lucene, never negative)."""


@dataclass(frozen=True)
class Filters:
    """What the caller narrows to, and the view that is asked for. Names of the request; None does not narrow."""

    spaces: tuple[UUID, ...]
    domains: Sequence[str] | None
    kinds: Sequence[str] | None
    sources: Sequence[str] | None
    since: datetime | None
    known_at: datetime | None
    decayed: bool
    phrases: Sequence[Sequence[Phrase]]
    excluded: Sequence[str]
    excluded_phrases: Sequence[Phrase]
    view: Mapping[str, Any]
    """The parameters of `visibility.view`."""


@dataclass(frozen=True)
class Asking:
    """The query as the legs take it: its vector, its contract, its forms of words (terms), memories by graph."""

    vector: Any
    contract: str
    forms: Sequence[str]
    graph: Sequence[UUID]
    width: int
    """Candidates a leg gives."""


@dataclass(frozen=True)
class Found:
    """`rows` = {space_id, passage_id, memory_id, version, ordinal, span_start, span_end, words, asks, dated, author,
    source_key, sequence, happened, cosine, tf, bm25}: candidates of all legs and what lies around the best of them,
    by passage_id. `passages` and `holding` (one number a form) are the statistics that ranked them; `exact` tells
    how."""

    rows: list[Row]
    passages: int
    holding: list[int]
    exact: bool


def search(unit: Unit, asking: Asking, filters: Filters) -> Found:
    """The candidates of the vector, the lexical and the graph leg, each under the filters and the visibility."""
    counts = _counts(unit, filters, _parameters(unit, asking, filters))
    # What holds nothing costs nothing: most private spaces, in the plan and in the look-up of terms.
    held = {space: count for space, count in zip(filters.spaces, counts, strict=True) if count}
    if not held:
        return Found([], 0, [0] * len(asking.forms), True)
    # Row level security names the visible spaces already: naming them again would square their share of the rows
    # in the planner's estimate.
    every = set(filters.spaces) == set(unit.principal.visible_spaces)
    filters = replace(filters, spaces=tuple(held))
    parameters = _parameters(unit, asking, filters)
    if sum(counts) <= EXACT_MAX:
        return _exact(unit, asking, filters, parameters, every=every)
    return _indexed(unit, asking, filters, parameters, [count > EXACT_MAX for count in held.values()])


_NARROW = """
and (%(domains)s::text[] is null or m.domain = any (%(domains)s))
and (%(kinds)s::text[] is null or m.kind = any (%(kinds)s))
and (%(sources)s::text[] is null or m.source = any (%(sources)s))
and (%(since)s::timestamptz is null or coalesce(m.observed_at, m.created_at) >= %(since)s)
"""
_PASSAGE = (
    "p.space_id, p.passage_id, p.memory_id, p.ordinal, p.span_start, p.span_end, p.words, p.asks, p.dated"
)
_MEMORY = (
    """v.version, m.author, m.source_key, m.sequence, coalesce(m.observed_at, m.created_at) as happened"""
)


@dataclass(frozen=True)
class _Scoring:
    """How the terms asked for score a passage p, in SQL.

    A few terms are written out one by one: a subquery a passage costs more than all else about it. Both forms give
    the same number, to the last bit: the sum has the same terms in the same order.
    """

    asked: str
    """The terms, as numbers of the passage's space."""
    count: int

    @classmethod
    def of(cls, asking: Asking, filters: Filters) -> _Scoring:
        # A reader sees one space or two.
        one, two = "%(terms_0)s::bigint[]", "%(terms_1)s::bigint[]"
        asked = (
            one
            if len(filters.spaces) == 1
            else f"(case p.space_id when %(space_0)s then {one} else {two} end)"
        )
        return cls(asked, len(asking.forms))

    @property
    def tf(self) -> str:
        """How often a passage holds each of them; null when it holds none."""
        if 0 < self.count <= WRITTEN_OUT:
            held = ", ".join(self._held(place) for place in self._places)
            return f"case when p.terms && {self.asked} then array[{held}] end"
        return f"""case when p.terms && {self.asked} then
          array(select cardinality(array_positions(p.terms, asked.term))
                from unnest({self.asked}) with ordinality as asked(term, place) order by asked.place) end"""

    def bm25(self, idf: str, average: str) -> str:
        def score(idf: str, f: str) -> str:
            length = f"{1 - B}::float8 + {B}::float8 * p.words / {average}"
            return f"{idf} * {f} * {K1 + 1} / ({f} + {K1}::float8 * ({length}))"

        if 0 < self.count <= WRITTEN_OUT:
            return (
                "("
                + " + ".join(
                    f"case when {self._term(place)} = any (p.terms)"
                    f" then {score(f'({idf})[{place}]', self._held(place))} else 0 end"
                    for place in self._places
                )
                + ")"
            )
        return f"""coalesce((select sum({score("asked.idf", "t.f")})
          from unnest({self.asked}, {idf}) as asked(term, idf)
          cross join lateral (values (cardinality(array_positions(p.terms, asked.term)))) as t(f)
          where asked.term = any (p.terms)), 0)"""

    @property
    def _places(self) -> range:
        return range(1, self.count + 1)

    def _term(self, place: int) -> str:
        return f"({self.asked})[{place}]"

    def _held(self, place: int) -> str:
        return f"cardinality(array_positions(p.terms, {self._term(place)}))"


def _parameters(unit: Unit, asking: Asking, filters: Filters) -> dict[str, Any]:
    spaces = filters.spaces
    parameters: dict[str, Any] = {
        "tenant": unit.tenant_id,
        "spaces": list(spaces),
        "space_0": spaces[0],
        "domains": filters.domains,
        "kinds": filters.kinds,
        "sources": filters.sources,
        "since": filters.since,
        "vector": vector_text(asking.vector),
        "contract": asking.contract,
        "width": asking.width,
        "graph": list(asking.graph),
        "excluded": [number for space in spaces for number in scoped(space, filters.excluded)],
        **filters.view,
    }
    for place in range(2):
        space = spaces[min(place, len(spaces) - 1)]
        parameters[f"terms_{place}"] = scoped(space, asking.forms)
    asked = {f"phrase_{number}": forms for number, forms in enumerate(filters.phrases)}
    for name, forms in {**asked, "without": filters.excluded_phrases}.items():
        for choice, (space, phrase) in enumerate(product(spaces, forms)):
            parameters[f"{name}_{choice}"] = scoped(space, phrase.terms)
            parameters[f"{name}_{choice}_in"] = list(phrase.languages)
    return parameters


def _visible(filters: Filters) -> str:
    """The one predicate of every leg on a memory: view and narrowing; tenant and space are policies."""
    return visibility.recallable(known_at=filters.known_at, decayed=filters.decayed) + _NARROW


def _worded(filters: Filters) -> str:
    """The same on a passage p, by all passages x of its memory, which a hit shows whole: each phrase is in one of
    them, what is left out in none."""
    wanted = ["true"]
    for number, alternatives in enumerate(filters.phrases):
        choices = range(len(filters.spaces) * len(alternatives))
        wanted.append(_some_passage([_holds(f"phrase_{number}_{c}") for c in choices]))
    unwanted = [
        _holds(f"without_{number}") for number in range(len(filters.spaces) * len(filters.excluded_phrases))
    ]
    if filters.excluded:
        unwanted.append("x.terms && %(excluded)s::bigint[]")
    if unwanted:
        wanted.append(f"not {_some_passage(unwanted)}")
    return " and ".join(wanted)


def _some_passage(conditions: Sequence[str]) -> str:
    return f"""exists (select from passage x where x.tenant_id = %(tenant)s and x.space_id = p.space_id
      and x.memory_id = p.memory_id and ({" or ".join(conditions)}))"""


def _holds(phrase: str) -> str:
    """Whether the passage x is in a language of that phrase and has its terms, one after the other."""
    return f"""(x.language = any (%({phrase}_in)s) and x.terms @> %({phrase})s::bigint[]
      and rem_holds_phrase(x.terms, %({phrase})s::bigint[]))"""


def _counts(unit: Unit, filters: Filters, parameters: Mapping[str, Any]) -> list[int]:
    """Memories of each space that the filters leave, live or not, counted to just above EXACT_MAX; sets up the
    vector search."""
    row = unit.row(
        f"""
        select set_config('hnsw.ef_search', '{EF_SEARCH}', true),
               set_config('hnsw.max_scan_tuples', '{MAX_SCANNED}', true),
               set_config('hnsw.scan_mem_multiplier', '{SCAN_MEMORY}', true), array(
          select (select count(*) from (
            select from memory m where m.tenant_id = %(tenant)s and m.space_id = s.space_id {_NARROW}
            limit {EXACT_MAX + 1}) as narrowed)
          from unnest(%(spaces)s::uuid[]) with ordinality as s(space_id, place) order by s.place) as memories
        """,
        parameters,
    )
    assert row is not None
    counted: list[int] = row["memories"]
    return counted


# The memories that lie around those of `near` in their source.
_AROUND = f"""
near as (
  select distinct m.space_id, m.source_key, m.sequence, m.memory_id
  from (select memory_id from nearest where place <= {NEAR} union select memory_id from said where place <= {NEAR}) best
  cross join lateral (select m.space_id, m.source_key, m.sequence, m.memory_id from memory m
    where m.tenant_id = %(tenant)s and m.memory_id = best.memory_id
      and m.source_key is not null and m.sequence is not null offset 0) m
), around as (
  select x.memory_id from near n cross join lateral (
    (select m.memory_id from memory m where m.tenant_id = %(tenant)s and m.space_id = n.space_id
       and m.source_key = n.source_key and (m.sequence, m.memory_id) < (n.sequence, n.memory_id)
       and m.source_key is not null and m.sequence is not null
     order by m.sequence desc, m.memory_id desc limit {REACH})
    union all
    (select m.memory_id from memory m where m.tenant_id = %(tenant)s and m.space_id = n.space_id
       and m.source_key = n.source_key and (m.sequence, m.memory_id) > (n.sequence, n.memory_id)
       and m.source_key is not null and m.sequence is not null
     order by m.sequence, m.memory_id limit {REACH})
  ) x
)"""


def _exact(
    unit: Unit, asking: Asking, filters: Filters, parameters: Mapping[str, Any], *, every: bool
) -> Found:
    """Every passage is compared; the statistics are those of what this reader sees at this moment."""
    within = "" if every else "and m.space_id = any (%(spaces)s::uuid[])"
    scoring = _Scoring.of(asking, filters)
    bm25 = scoring.bm25("w.idf", "s.average")
    rows = unit.rows(
        f"""
        with seen as materialized (
          select m.memory_id, {_MEMORY} from memory m
          join memory_version v on v.tenant_id = m.tenant_id and v.memory_id = m.memory_id
          where m.tenant_id = %(tenant)s {within} and {_visible(filters)}
        ), pool as materialized (
          select {_PASSAGE}, m.version, m.author, m.source_key, m.sequence, m.happened,
                 1 - (p.embedding <=> %(vector)s::halfvec) as cosine,
                 case when p.terms && {scoring.asked} then p.terms end as terms
          from seen m join passage p on p.tenant_id = %(tenant)s and p.memory_id = m.memory_id
          where p.space_id = any (%(spaces)s::uuid[]) and p.contract = %(contract)s and {_worded(filters)}
        ), size as (
          select count(*) as passages, coalesce(nullif(avg(words), 0), 1)::float8 as average from pool
        ), holding as (
          select place, coalesce(held.n, 0) as n from generate_series(1, %(forms)s) as every(place)
          left join (select asked.place, count(*) as n from pool p
                     cross join unnest({scoring.asked}) with ordinality as asked(term, place)
                     where p.terms is not null and asked.term = any (p.terms) group by asked.place) held using (place)
        ), weights as (
          select array_agg(h.n order by h.place) as holding,
                 array_agg(ln(1 + (s.passages - h.n + 0.5) / (h.n + 0.5)) order by h.place) as idf
          from holding h, size s
        ), matched as materialized (
          select p.passage_id, p.memory_id, {bm25} as bm25
          from pool p, size s, weights w where p.terms is not null
        ), nearest as (
          select memory_id, passage_id, row_number() over () as place
          from (select * from pool order by cosine desc, passage_id limit %(width)s) as n
        ), said as (
          select memory_id, passage_id, row_number() over () as place
          from (select * from matched order by bm25 desc, passage_id limit %(width)s) as n
        ), {_AROUND}
        select {_PASSAGE}, p.version, p.author, p.source_key, p.sequence, p.happened, p.cosine,
               {scoring.tf} as tf, case when p.terms is null then 0 else {bm25} end as bm25,
               s.passages, w.holding
        from pool p cross join size s cross join weights w
        where p.passage_id in (select passage_id from nearest union all select passage_id from said)
           or p.memory_id in (select memory_id from around union all select unnest(%(graph)s::uuid[]))
        order by p.passage_id
        """,
        {**parameters, "forms": len(asking.forms)},
    )
    if not rows:
        return Found([], 0, [0] * len(asking.forms), True)
    return Found(rows, rows[0]["passages"], rows[0]["holding"] or [], True)


def _indexed(
    unit: Unit, asking: Asking, filters: Filters, parameters: Mapping[str, Any], large: Sequence[bool]
) -> Found:
    """The nearest by HNSW (of a space that is not `large`: by comparing all), the lexically best of those that the
    rarest words bring; then what lies around."""
    known = terms.statistics(unit, filters.spaces, asking.forms)
    wanted = terms.choose(known, len(asking.forms), CANDIDATE_PASSAGES)
    visible, worded = _visible(filters), _worded(filters)
    scoring = _Scoring.of(asking, filters)
    bm25 = scoring.bm25("%(idf)s::float8[]", "%(average)s::float8")
    # Adding nothing to the distance keeps a small space out of the index, which would search its neighbours.
    nearest = " union all ".join(
        f"""(select p.passage_id, p.memory_id, p.space_id, p.embedding <=> %(vector)s::halfvec as distance
           from passage p
           where p.tenant_id = %(tenant)s and p.space_id = %(in_{place})s and p.contract = %(contract)s
             and {worded} and {visibility.seen("p.memory_id", "true", visible)}
           order by (p.embedding <=> %(vector)s::halfvec) {"" if indexed else "+ 0"} limit %(width)s)"""
        for place, indexed in enumerate(large)
    )
    given = {
        **parameters,
        "idf": known.idf,
        "average": known.average,
        **{f"in_{place}": space for place, space in enumerate(filters.spaces)},
        "wanted": [n for space in filters.spaces for n in scoped(space, [asking.forms[i] for i in wanted])],
    }
    rows = unit.rows(
        f"""
        with nearest as materialized (
          select *, row_number() over (order by distance, passage_id) as place from ({nearest}) as n
        ), said as materialized (
          select p.space_id, p.passage_id, p.memory_id, row_number() over () as place
          from (select p.*, {bm25} as bm25
                from rem_passages_with(%(spaces)s::uuid[], %(wanted)s::bigint[]) p
                order by bm25 desc, passage_id) p
          where {worded} and {visibility.seen("p.memory_id", "true", visible)} limit %(width)s
        ), {_AROUND}, chosen as (
          select p.space_id, p.passage_id from (
            select memory_id from around union select unnest(%(graph)s::uuid[])
          ) a cross join lateral (select p.space_id, p.passage_id from passage p where p.tenant_id = %(tenant)s
              and p.space_id = any (%(spaces)s::uuid[]) and p.memory_id = a.memory_id offset 0) p
          union select space_id, passage_id from nearest
          union select space_id, passage_id from said
        )
        select {_PASSAGE}, m.*, 1 - (p.embedding <=> %(vector)s::halfvec) as cosine, {scoring.tf} as tf,
               {bm25} as bm25
        from chosen
        cross join lateral (select p.* from passage p where p.tenant_id = %(tenant)s
            and p.space_id = any (%(spaces)s::uuid[]) and p.space_id = chosen.space_id
            and p.passage_id = chosen.passage_id and {worded} offset 0) p
        cross join lateral {visibility.seen("p.memory_id", _MEMORY, visible)} m
        order by p.passage_id
        """,
        given,
    )
    return Found(rows, known.passages, known.holding, False)


def hydrate(unit: Unit, found: Sequence[Row]) -> list[Row]:
    """Everything a hit shows, for rows of `Found`, each with the version it was found under."""
    # Laterals that stay apart keep the order of joins: from the few rows asked for, by their keys.
    rows = unit.rows(
        f"""
        select m.*, v.version, v.valid_from, v.valid_to, v.expires_at,
               v.created_at as version_created_at, v.superseded_at, {visibility.SUCCESSOR}
        from unnest(%(memories)s::uuid[], %(versions)s::int[]) as wanted(memory_id, version)
        cross join lateral (select m.* from memory m
          where m.tenant_id = %(tenant)s and m.memory_id = wanted.memory_id offset 0) m
        cross join lateral (select v.* from memory_version v
          where v.tenant_id = %(tenant)s and v.memory_id = wanted.memory_id and v.version = wanted.version offset 0) v
        """,
        {
            "tenant": unit.tenant_id,
            "memories": [row["memory_id"] for row in found],
            "versions": [row["version"] for row in found],
        },
    )
    spans = {row["memory_id"]: row for row in found}
    kept = ("passage_id", "span_start", "span_end")
    return [{**row, **{name: spans[row["memory_id"]][name] for name in kept}} for row in rows]


def context(
    unit: Unit,
    memory_ids: Sequence[UUID],
    spaces: Sequence[UUID],
    reach: int,
    known_at: datetime | None,
    view: Mapping[str, Any],
    *,
    decayed: bool = False,
) -> dict[UUID, list[Row]]:
    """What may be shown of the memories just before and after each of these in its source, nearest first:
    {memory_id, content, author, observed_at, offset}."""
    visible = visibility.recallable(known_at=known_at, decayed=decayed)

    def side(sign: str, compare: str, order: str) -> str:
        return f"""(select m.memory_id, m.content, m.author, m.observed_at,
            {sign} row_number() over (order by m.sequence {order}, m.memory_id {order}) as "offset"
          from memory m join memory_version v on v.tenant_id = m.tenant_id and v.memory_id = m.memory_id
          where m.tenant_id = %(tenant)s and m.space_id = h.space_id and m.source_key = h.source_key
            and (m.sequence, m.memory_id) {compare} (h.sequence, h.memory_id) and {visible}
          order by m.sequence {order}, m.memory_id {order} limit %(reach)s)"""

    rows = unit.rows(
        f"""
        select h.memory_id as hit, x.* from memory h
        cross join lateral ({side("-", "<", "desc")} union all {side("", ">", "")}) x
        where h.tenant_id = %(tenant)s and h.memory_id = any (%(ids)s::uuid[]) and h.space_id = any (%(spaces)s::uuid[])
          and h.source_key is not null and h.sequence is not null
        order by h.memory_id, abs(x."offset"), x."offset"
        """,
        {
            "tenant": unit.tenant_id,
            "ids": list(memory_ids),
            "spaces": list(spaces),
            "reach": reach,
            "known_at": known_at,
            **view,
        },
    )
    found: dict[UUID, list[Row]] = {}
    for row in rows:
        found.setdefault(row["hit"], []).append(row)
    return found
