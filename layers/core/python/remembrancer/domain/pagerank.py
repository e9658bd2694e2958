"""Personalized PageRank over the few edges around the entities of a query."""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Iterable
from typing import TypeVar

Node = TypeVar("Node", bound=Hashable)

RESTART = 0.5
"""A walk returns to the query's entities every other step: what is two edges away matters little."""
ROUNDS = 20


def pagerank(edges: Iterable[tuple[Node, Node]], seeds: Collection[Node]) -> dict[Node, float]:
    """Rank of each node reached from the seeds, summing to 1 (Haveliwala 2002), edges walked both ways.

    Hubs are damped: the walk goes to a neighbour in proportion to 1 / log(2 + its degree), so that what
    everything is tied to carries little.
    """
    beside: dict[Node, set[Node]] = {}
    for one, other in edges:
        if one != other:
            beside.setdefault(one, set()).add(other)
            beside.setdefault(other, set()).add(one)
    start = {seed: 1 / len(seeds) for seed in seeds}
    pull = {node: 1 / math.log(2 + len(around)) for node, around in beside.items()}
    flow = {node: sum(pull[other] for other in around) for node, around in beside.items()}
    rank = dict(start)
    for _ in range(ROUNDS):
        following = {seed: RESTART * share for seed, share in start.items()}
        for node, share in rank.items():
            if node not in beside:
                # A dead end returns to where it came from.
                for seed, part in start.items():
                    following[seed] += (1 - RESTART) * share * part
                continue
            for other in beside[node]:
                following[other] = (
                    following.get(other, 0.0) + (1 - RESTART) * share * pull[other] / flow[node]
                )
        rank = following
    return rank
