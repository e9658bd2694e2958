"""LoCoMo as memories: each turn one memory, each conversation a tenant of its own.

Nothing of the data is kept in the repository; vectors are cached under .cache/, outside git.
"""

from __future__ import annotations

import hashlib
import json
import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np

from layers.model.build import ensure
from remembrancer.adapters.embedding import OnnxEmbedder
from remembrancer.api.wiring import new_id
from remembrancer.domain.digests import dedup_key
from remembrancer.domain.memory import NewMemory, origin_of
from remembrancer.domain.passages import render
from remembrancer.domain.principal import Credential
from remembrancer.flows.bootstrap import BootstrapRequest, bootstrap
from remembrancer.flows.context import Services
from remembrancer.flows.index import Text, passages_of
from remembrancer.store import memories
from remembrancer.store.database import Database, Unit, connect

CACHE = Path(__file__).parent.parent / ".cache" / "bench"
ISSUER = "bench"
_EVIDENCE = re.compile(r"D:?(\d+):(\d+)")


@dataclass(frozen=True)
class Turn:
    id: str
    speaker: str
    text: str
    at: datetime
    """The session's time; a turn is a second after the one before, so that their order is kept."""
    session: int

    @property
    def rendered(self) -> str:
        return render(self.text, self.speaker, self.at.date())


@dataclass(frozen=True)
class Asked:
    text: str
    category: int
    gold: tuple[str, ...]


@dataclass
class Conversation:
    number: int
    turns: list[Turn]
    questions: list[Asked]
    ids: dict[str, UUID] = field(default_factory=dict)
    """The memory of each turn, once stored."""

    @property
    def answerable(self) -> list[Asked]:
        return [asked for asked in self.questions if asked.category != 5 and asked.gold]

    @property
    def adversarial(self) -> list[Asked]:
        return [asked for asked in self.questions if asked.category == 5]

    @cached_property
    def credential(self) -> Credential:
        """One object: requests are counted by it, and a benchmark is one long request."""
        return Credential(ISSUER, f"reader-{self.number}", frozenset({"read", "write"}), frozenset())


def read(folder: Path) -> list[Conversation]:
    """The ten conversations of locomo10.json."""
    found = []
    for number, entry in enumerate(json.loads((folder / "locomo10.json").read_text(encoding="utf-8"))):
        talk = entry["conversation"]
        turns: list[Turn] = []
        session = 1
        while f"session_{session}" in talk:
            begins = datetime.strptime(talk[f"session_{session}_date_time"], "%I:%M %p on %d %B, %Y")
            turns += [
                Turn(
                    said["dia_id"],
                    said["speaker"],
                    said["text"],
                    begins.replace(tzinfo=UTC) + timedelta(seconds=place),
                    session,
                )
                for place, said in enumerate(talk[f"session_{session}"])
            ]
            session += 1
        known = {turn.id for turn in turns}
        questions = []
        for asked in entry["qa"]:
            gold = [
                f"D{int(a)}:{int(b)}"
                for cited in asked.get("evidence", [])
                for a, b in _EVIDENCE.findall(cited)
            ]
            questions.append(
                Asked(
                    asked["question"], asked["category"], tuple(g for g in dict.fromkeys(gold) if g in known)
                )
            )
        found.append(Conversation(number, turns, questions))
    return found


class CachedEmbedder:
    """The real embedder behind a file of vectors by text."""

    def __init__(self, threads: int = 2) -> None:
        self._real = OnnxEmbedder(ensure(), threads=threads)
        self._path = CACHE / f"{hashlib.sha256(self._real.contract.encode()).hexdigest()[:16]}.npz"
        self._known: dict[str, Any] = {}
        if self._path.exists():
            with np.load(self._path) as stored:
                self._known = dict(zip(stored["keys"].tolist(), stored["vectors"], strict=True))

    @property
    def contract(self) -> str:
        return self._real.contract

    @property
    def real(self) -> OnnxEmbedder:
        return self._real

    def count_tokens(self, text: str) -> int:
        return self._real.count_tokens(text)

    def embed(self, texts: Sequence[str]) -> Any:
        keys = [hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest() for text in texts]
        missing = {k: t for k, t in zip(keys, texts, strict=True) if k not in self._known}
        if missing:
            self._known.update(zip(missing, self._real.embed(list(missing.values())), strict=True))
        return np.stack([self._known[key] for key in keys])

    def save(self) -> None:
        """Whole or not at all: another run may be reading."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=self._path.parent, delete=False) as file:
            np.savez(file, keys=np.array(list(self._known)), vectors=np.stack(list(self._known.values())))
        Path(file.name).replace(self._path)


class NoMacs:
    """Recall witnesses nothing."""

    def mac(self, purpose: str, tenant: UUID, message: bytes) -> bytes:
        return hashlib.sha256(purpose.encode() + tenant.bytes + message).digest()


def services(url: str, embedder: Any) -> Services:
    return Services(
        database=Database(connect(url), new_id, statement_timeout_ms=600_000),
        embedder=embedder,
        macs=NoMacs(),
        clock=lambda: datetime.now(UTC),
        new_id=new_id,
    )


def store(migrate: Services, ingest: Services, conversation: Conversation) -> None:
    """A tenant, a principal and a memory a turn, through the store that every admission goes through (without
    the screen, the conflict check and the audit of each, which recall does not measure)."""
    bootstrap(
        migrate,
        BootstrapRequest.model_validate(
            {
                "tenant": f"locomo-{conversation.number}",
                "principals": [
                    {
                        "name": "reader",
                        "kind": "agent",
                        "issuer": ISSUER,
                        "subject": f"reader-{conversation.number}",
                        "capabilities": [],
                        "team_grant": "write",
                        "keys": [],
                    }
                ],
            }
        ),
    )
    embedder = ingest.embedder
    embedder.embed([turn.rendered for turn in conversation.turns])

    def write(unit: Unit) -> None:
        news = []
        for turn in conversation.turns:
            conversation.ids[turn.id] = memory_id = unit.new_id()
            uri = f"talk:{conversation.number}/{turn.session}"
            news.append(_memory(unit, memory_id, turn, uri, embedder))
        memories.insert_many(unit, news, "bench", unit.now)
        unit.audit("bench_stored")

    ingest.database.write(conversation.credential, write)


def _memory(unit: Unit, memory_id: UUID, turn: Turn, uri: str, embedder: Any) -> NewMemory:
    principal = unit.principal
    content = turn.text or "..."
    return NewMemory(
        memory_id=memory_id,
        space_id=principal.team_space,
        owner_id=principal.principal_id,
        domain="global",
        kind="fact",
        title=None,
        content=content,
        author=turn.speaker,
        origin=origin_of("structured"),
        source="structured",
        assertion_kind="stated",
        admitted_by="ingest",
        approved_by=None,
        proposal_id=None,
        data_subjects=(),
        observed_at=turn.at,
        valid_from=None,
        valid_to=None,
        expires_at=None,
        source_uri=uri,
        revision=None,
        pii=False,
        screen={},
        screen_overridden=False,
        confidence=1.0,
        confidence_parts={},
        dedup_key=dedup_key(
            space_id=principal.team_space,
            content=content,
            title=turn.id,
            kind="fact",
            domain="global",
            valid_from=None,
            valid_to=None,
            source_uri=uri,
            revision=None,
        ),
        passages=passages_of(embedder, Text(content, turn.speaker, turn.at)),
        held=False,
    )
