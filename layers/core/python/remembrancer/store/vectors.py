"""Vectors as the database reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray


def vector_text(vector: NDArray[Any]) -> str:
    """pgvector's text form of one vector."""
    return "[" + ",".join(f"{x:.7g}" for x in vector.tolist()) + "]"
