"""The workflow of remember in this process: the deployed definition, interpreted; the same steps; a bucket in memory.

The interpreter knows what the definition uses and nothing else. It keeps a history like Step Functions does, and a
hook before each state may raise `Killed`, as an environment that is gone.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

from remembrancer.api.tasks import task
from remembrancer.domain.assessment import (
    AssessmentRequest,
    Conversation,
    EvidenceView,
    MentionView,
    PredicateView,
    ProposalView,
    ValueView,
)
from remembrancer.domain.ids import format_id, parse_id
from remembrancer.domain.ports import Answer
from remembrancer.domain.remember_requests import RememberRequest
from remembrancer.domain.remember_work import Turn
from remembrancer.flows.assess import call_model, check
from remembrancer.flows.context import Services
from remembrancer.flows.remember import Outcome, Waiting, remember
from remembrancer.flows.remember_end import record_failure
from remembrancer.flows.remember_finish import finish
from remembrancer.flows.remember_prepare import prepare
from tests.integration.probe import call_of
from tests.integration.world import AGENT, Person, World

DEFINITION = json.loads(
    (Path(__file__).parents[3] / "infra" / "remember.asl.json").read_text(encoding="utf-8")
)


class Killed(BaseException):
    """The environment is gone: nothing of the step after this happens, and no catch of ours runs."""


class MemoryObjects:
    """The work bucket. `seen` keeps every key that was ever written."""

    def __init__(self) -> None:
        self.held: dict[str, bytes] = {}
        self.seen: list[str] = []

    def put(self, key: str, body: bytes, media_type: str) -> None:
        self.held[key] = body
        self.seen.append(key)

    def get(self, key: str) -> bytes | None:
        return self.held.get(key)

    def delete(self, keys: Sequence[str]) -> None:
        for key in keys:
            self.held.pop(key, None)

    def link(self, key: str, seconds: int) -> str:
        raise AssertionError("no step of an attempt hands out links")


Script = Callable[[Conversation], Answer]


@dataclass
class ScriptedAssessor:
    """Answers turn by turn from a script, and then like one that believes everything."""

    script: list[Script | str] = field(default_factory=list)
    name: str = "scripted"
    calls: list[Conversation] = field(default_factory=list)

    def answer(self, conversation: Conversation) -> Answer:
        self.calls.append(conversation)
        says = self.script.pop(0) if self.script else believes
        return says(conversation) if callable(says) else said(says)


def said(text: str, **more: Any) -> Answer:
    return Answer(text=text, model="scripted-1", input_tokens=10, output_tokens=5, **more)


def believes(conversation: Conversation) -> Answer:
    """Every item passes and is new, every proposal is supported by the first word of what it cites."""
    return said(json.dumps(belief(conversation.request)))


def belief(request: AssessmentRequest) -> dict[str, Any]:
    texts = {item.ref: item.text for item in request.evidence}
    return {
        "evidence": [_pass(item) for item in request.evidence],
        "proposals": [_stored(proposal, texts) for proposal in request.proposals],
    }


def _pass(item: EvidenceView) -> dict[str, Any]:
    return {"ref": item.ref, "security": "pass", "findings": [], "duplicate": "new"}


def _stored(proposal: ProposalView, texts: Mapping[str, str]) -> dict[str, Any]:
    return {
        "ref": proposal.ref,
        "disposition": "stored",
        "splits": [
            {
                "subject": _end(proposal.subject),
                "predicate": _predicate(proposal.predicate),
                "object": _object(proposal.object),
                "polarity": proposal.polarity,
                "valid_from": proposal.valid_from,
                "valid_to": proposal.valid_to,
                "supports": [
                    {"evidence": ref, "quote": texts[ref].split()[0], "occurrence": 1}
                    for ref in proposal.evidence
                ],
            }
        ],
    }


def _end(mention: MentionView) -> dict[str, Any]:
    chosen = mention.required or (mention.options[0].ref if mention.options else None)
    return {"resolution": "create" if chosen is None else "reuse", "entity": chosen, "name": mention.name}


def _object(found: MentionView | ValueView) -> dict[str, Any]:
    if isinstance(found, ValueView):
        return {"resolution": "value", "entity": None, "name": None, "value": found.text}
    return {**_end(found), "value": None}


def _predicate(view: PredicateView) -> dict[str, Any]:
    exact = [option.ref for option in view.options if option.key == view.proposed_key]
    chosen = view.required or (exact[0] if exact else None)
    if chosen is not None:
        return {"choose": chosen, "register": None}
    registered = {
        "key": view.proposed_key,
        "kind": "state",
        "cardinality": "many",
        "subject_kinds": [],
        "object_kinds": [],
    }
    return {"choose": None, "register": registered}


@dataclass
class Execution:
    """What Step Functions would keep for ninety days."""

    name: str
    history: list[dict[str, Any]] = field(default_factory=list)
    status: str = "RUNNING"

    @property
    def states(self) -> list[str]:
        return [event["state"] for event in self.history if event["type"] == "entered"]


class Machine:
    """One machine: executions by name, each name once."""

    def __init__(self, tasks: Mapping[str, Callable[[dict[str, Any]], Any]]) -> None:
        self._tasks = tasks
        self._lock = threading.Lock()
        self.executions: dict[str, Execution] = {}
        self.before: Callable[[str, dict[str, Any]], None] = lambda state, data: None

    def start(self, name: str, data: dict[str, Any]) -> Execution:
        """Run to the end, in the caller's thread. A name that was used before does nothing."""
        with self._lock:
            if name in self.executions:
                return self.executions[name]
            execution = self.executions[name] = Execution(name)
        try:
            self._run(execution, data)
        except Killed:
            execution.status = "ABORTED"
        return execution

    def _run(self, execution: Execution, data: dict[str, Any]) -> None:
        state = DEFINITION["StartAt"]
        while True:
            entry = DEFINITION["States"][state]
            execution.history.append({"type": "entered", "state": state, "input": json.dumps(data)})
            self.before(state, data)
            match entry["Type"]:
                case "Succeed":
                    execution.status = "SUCCEEDED"
                    return
                case "Choice":
                    state = _choose(entry, data)
                    continue
                case "Pass":
                    data = _with(data, entry["ResultPath"], entry["Result"])
                case "Task":
                    state, data = self._task(execution, entry, data)
                    if state == "":
                        execution.status = "FAILED"
                        return
                    continue
            state = entry["Next"]

    def _task(
        self, execution: Execution, entry: dict[str, Any], data: dict[str, Any]
    ) -> tuple[str, dict[str, Any]]:
        given = _parameters(entry.get("Parameters"), data)
        tries = 0
        while True:
            try:
                result = self._tasks[entry["Resource"].strip("${}")](given)
                return entry["Next"], json.loads(json.dumps(result))
            except Exception as error:  # noqa: BLE001 - as the service: any error, by the name of its class
                name = type(error).__name__
                cause = {"errorMessage": str(error), "errorType": name}
                execution.history.append({"type": "failed", "error": name, "cause": json.dumps(cause)})
                retry = next(
                    (
                        r
                        for r in entry.get("Retry", ())
                        if {name, "States.TaskFailed"} & set(r["ErrorEquals"])
                    ),
                    None,
                )
                if retry is not None and tries < retry["MaxAttempts"]:
                    tries += 1
                    continue
                for catch in entry.get("Catch", ()):
                    assert catch["ErrorEquals"] == ["States.ALL"]
                    failure = {"Error": name, "Cause": json.dumps(cause)}
                    return catch["Next"], _with(data, catch["ResultPath"], failure)
                return "", data


def _choose(entry: dict[str, Any], data: dict[str, Any]) -> str:
    for choice in entry["Choices"]:
        value = _path(choice["Variable"], data)
        if value == choice.get("StringEquals", object()):
            return str(choice["Next"])
        if "NumericLessThanEquals" in choice and value <= choice["NumericLessThanEquals"]:
            return str(choice["Next"])
    return str(entry["Default"])


def _parameters(template: Mapping[str, str] | None, data: dict[str, Any]) -> dict[str, Any]:
    if template is None:
        return data
    return {name.removesuffix(".$"): _path(path, data) for name, path in template.items()}


def _path(path: str, data: Any) -> Any:
    for part in path.removeprefix("$.").split("."):
        data = data[part]
    return data


def _with(data: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    return {**data, path.removeprefix("$."): value}


@dataclass
class Remembering:
    """A world whose attempts are worked on. `begin` is what the front does when it has taken one on."""

    world: World
    assessor: ScriptedAssessor = field(default_factory=ScriptedAssessor)
    objects: MemoryObjects = field(default_factory=MemoryObjects)
    begin: Callable[[UUID], None] | None = None
    started: list[UUID] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.machine = Machine(
            {
                "remember_prepare": self._step(
                    lambda e: prepare(self.of("remember_prepare"), _id(e), self.assessor.name).to_state()
                ),
                "remember_call_model": self._step(
                    lambda e: call_model(
                        self.assessor, self.objects, self.of("remember").clock, Turn.of_state(e)
                    ).to_state()
                ),
                "remember_check": self._step(
                    lambda e: check(self.of("remember_check"), Turn.of_state(e)).to_state()
                ),
                "remember_commit": self._step(
                    lambda e: finish(self.of("remember_commit"), _id(e)) or {"attempt_id": e["attempt_id"]}
                ),
                "remember_failed": self._step(
                    lambda e: record_failure(self.of("remember_failed"), _id(e), e["error"])
                ),
            }
        )
        self._local = threading.local()
        self._worlds: list[World] = []
        self._worlds_lock = threading.Lock()

    def of(self, function: str) -> Services:
        """The function's services in this thread, with connections of its own."""
        own = getattr(self._local, "world", None)
        if own is None:
            own = self._local.world = replace(self.world, _open={})
            with self._worlds_lock:
                self._worlds.append(own)
        return replace(own.services(function), objects=self.objects, start_attempt=self._begin)

    def wire(self) -> World:
        """The world's own handlers too: the front starts the workflow."""
        front = self.world.services("remember")
        self.world._open["remember"] = replace(front, start_attempt=self._begin)
        for function in ("purge", "remember_failed"):
            self.world._open[function] = replace(self.world.services(function), objects=self.objects)
        return self.world

    def close(self) -> None:
        for own in self._worlds:
            own.close()

    def run(self, attempt_id: UUID) -> Execution:
        name = format_id("att", attempt_id)
        return self.machine.start(name, {"attempt_id": name})

    def remember(
        self,
        body: dict[str, Any],
        person: Person = AGENT,
        *,
        wait_s: float = 0,
        **more: Any,
    ) -> Outcome:
        """Through the flow, in any thread. The workflow runs inside the call unless `begin` says otherwise."""
        call = call_of(person, "POST /v1/remember", more.pop("header_key", None))
        request = RememberRequest.model_validate(body)
        return remember(self.of("remember"), call, request, Waiting(timedelta(seconds=wait_s), **more))

    def _begin(self, attempt_id: UUID) -> None:
        self.started.append(attempt_id)
        if self.begin is not None:
            self.begin(attempt_id)
        else:
            self.run(attempt_id)

    @staticmethod
    def _step(work: Callable[[dict[str, Any]], Any]) -> Callable[[dict[str, Any]], Any]:
        wrapped = task(lambda event, context: work(event))
        return lambda event: wrapped(event, None)


def _id(event: Mapping[str, Any]) -> UUID:
    return parse_id("att", event["attempt_id"])


def ada(key: str = "k-1", **more: Any) -> dict[str, Any]:
    """One text, one relationship."""
    return {
        "idempotency_key": key,
        "target_space": "team_shared",
        "evidence": [{"content": "Ada works at Acme."}],
        "relationships": [
            {
                "ref": "r1",
                "subject": {"name": "Ada", "entity_kind": "person"},
                "predicate": {"proposed_key": "works_at"},
                "object": {"entity": {"name": "Acme", "entity_kind": "organization"}},
                "evidence_indices": [0],
            }
        ],
        **more,
    }
