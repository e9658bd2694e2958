"""Request bodies of legal holds and of data subjects' requests."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, StringConstraints, model_validator
from pydantic_core import PydanticCustomError

from remembrancer.domain.dsar import Jurisdiction
from remembrancer.domain.requests import Closed, Instant, Name, PublicId, Subject


def _no_secret(value: str) -> str:
    # At first use: every function names the fields of these requests, few read one, and the finder brings numpy.
    from remembrancer.domain.secrets import find_secrets

    if find_secrets(value):
        raise PydanticCustomError("secret", "is a secret and no number of a case")
    return value


CaseReference = Annotated[str, StringConstraints(pattern=r"^[\x21-\x7e]{1,64}$"), AfterValidator(_no_secret)]
"""An opaque number of the case: it is kept, and audited, for good, so that nobody could take a secret out again."""


class LegalHoldRequest(Closed):
    """What is held is named by exactly one of ids and data subject."""

    memory_ids: Annotated[list[PublicId], Field(min_length=1, max_length=1_000)] | None = None
    data_subject: Subject | None = None
    reason: Literal["litigation", "investigation", "regulator", "audit", "other"]
    case_reference: CaseReference

    @model_validator(mode="after")
    def _one_selector(self) -> LegalHoldRequest:
        if (self.memory_ids is None) == (self.data_subject is None):
            raise PydanticCustomError("one_selector", "exactly one of memory_ids and data_subject")
        return self


class LegalHoldReleaseRequest(Closed):
    reason: Literal["case_closed", "placed_in_error", "replaced", "other"]


class DsarRequest(Closed):
    """Whose data: one or more of the four ways to be found. `received_at` is when the person asked."""

    action: Literal["register", "export", "purge", "both", "refuse"]
    jurisdiction: Jurisdiction
    received_at: Instant | None = None
    data_subject: Subject | None = None
    entities: Annotated[list[PublicId], Field(min_length=1, max_length=50)] | None = None
    author: Name | None = None
    owner: PublicId | None = None
    case_reference: CaseReference | None = None
    reason: Literal["identity_not_proved", "unfounded", "excessive", "withdrawn", "nothing_held"] | None = (
        None
    )
    dry_run: bool

    @model_validator(mode="after")
    def _whole(self) -> DsarRequest:
        if all(given is None for given in (self.data_subject, self.entities, self.author, self.owner)):
            raise PydanticCustomError(
                "one_selector", "at least one of data_subject, entities, author and owner"
            )
        if (self.reason is None) == (self.action == "refuse"):
            raise PydanticCustomError("refusal", "a reason with the action refuse, and with no other")
        return self


class OffboardRequest(Closed):
    """`tenant` is its name, so that nobody does it to another by mistake."""

    tenant: Name
    reason: Literal["contract_ended", "moved", "other"]
    dry_run: bool
