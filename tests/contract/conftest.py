"""The contract tests run the real handlers on a real database."""

from tests.integration.conftest import database, new_database, postgres, world

__all__ = ["database", "new_database", "postgres", "world"]
