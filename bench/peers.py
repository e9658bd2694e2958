"""The stores recall is compared with, given the same PostgreSQL, embedder and text. Runs in `.venv-bench`.

Each keeps texts under keys in a group (a conversation, a tenant) and answers the keys nearest to a query.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any, Protocol

DIMENSIONS = 384


class Peer(Protocol):
    name: str

    def add(self, group: str, keys: Sequence[str], texts: Sequence[str]) -> None: ...

    def search(self, group: str, query: str, limit: int) -> list[str]: ...

    def close(self) -> None: ...


class PostgresStore:
    """LangGraph's PostgresStore with its defaults: pgvector, HNSW, cosine."""

    name = "PostgresStore"

    def __init__(self, url: str, embedder: Any) -> None:
        from langgraph.store.postgres import PostgresStore as Store

        self._open = ExitStack()

        def embed(texts: Sequence[str]) -> list[list[float]]:
            return [vector.tolist() for vector in embedder.embed(list(texts))]

        index = {"dims": DIMENSIONS, "embed": embed, "fields": ["text"]}
        self._store = self._open.enter_context(Store.from_conn_string(url, index=index))
        self._store.setup()

    def add(self, group: str, keys: Sequence[str], texts: Sequence[str]) -> None:
        from langgraph.store.base import PutOp

        pairs = list(zip(keys, texts, strict=True))
        for start in range(0, len(pairs), 100):
            self._store.batch(
                [PutOp((group,), key, {"text": text}) for key, text in pairs[start : start + 100]]
            )

    def search(self, group: str, query: str, limit: int) -> list[str]:
        return [item.key for item in self._store.search((group,), query=query, limit=limit)]

    def close(self) -> None:
        self._open.close()


class Mem0:
    """mem0 with `infer=False` on pgvector, HNSW on; its own hybrid search, without a model for lemmas."""

    name = "mem0"

    def __init__(self, url: str, embedder: Any) -> None:
        os.environ["MEM0_TELEMETRY"] = "False"
        self._folder = tempfile.TemporaryDirectory(prefix="rem-mem0-")
        os.environ["MEM0_DIR"] = self._folder.name
        # It makes a client of a model that nothing here calls.
        os.environ.setdefault("OPENAI_API_KEY", "-".join(("not", "used")))
        from mem0 import Memory
        from mem0.utils import factory

        class Embedding:
            def embed(self, text: str, memory_action: str | None = None) -> list[float]:
                return [float(x) for x in embedder.embed([text])[0]]

            def embed_batch(
                self, texts: Sequence[str], memory_action: str | None = None
            ) -> list[list[float]]:
                return [[float(x) for x in vector] for vector in embedder.embed(list(texts))]

        factory.EmbedderFactory.create = classmethod(lambda cls, *rest: Embedding())
        self._memory = Memory.from_config(
            {
                "vector_store": {
                    "provider": "pgvector",
                    "config": {
                        "connection_string": url,
                        "embedding_model_dims": DIMENSIONS,
                        "collection_name": "mem0",
                    },
                },
                "history_db_path": f"{self._folder.name}/history.db",
            }
        )

    def add(self, group: str, keys: Sequence[str], texts: Sequence[str]) -> None:
        for key, text in zip(keys, texts, strict=True):
            self._memory.add(
                [{"role": "user", "content": text}], user_id=group, metadata={"key": key}, infer=False
            )

    def search(self, group: str, query: str, limit: int) -> list[str]:
        found = self._memory.search(query, filters={"user_id": group}, top_k=limit, threshold=0.0)
        return [hit["metadata"]["key"] for hit in found["results"]]

    def close(self) -> None:
        self._folder.cleanup()
