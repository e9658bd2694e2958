"""Request bodies of legal holds."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints, model_validator
from pydantic_core import PydanticCustomError

from remembrancer.domain.requests import Closed, PublicId, Subject


class LegalHoldRequest(Closed):
    """What is held is named by exactly one of ids and data subject."""

    memory_ids: Annotated[list[PublicId], Field(min_length=1, max_length=1_000)] | None = None
    data_subject: Subject | None = None
    reason: Literal["litigation", "investigation", "regulator", "audit", "other"]
    case_reference: Annotated[str, StringConstraints(pattern=r"^[\x21-\x7e]{1,64}$")]
    """An opaque number of the case: it is kept, and audited, for good."""

    @model_validator(mode="after")
    def _one_selector(self) -> LegalHoldRequest:
        if (self.memory_ids is None) == (self.data_subject is None):
            raise PydanticCustomError("one_selector", "exactly one of memory_ids and data_subject")
        return self


class LegalHoldReleaseRequest(Closed):
    reason: Literal["case_closed", "placed_in_error", "replaced", "other"]
