"""Request bodies of the imports: Markdown, memory blocks, UMP; and of what is done with a memory later."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, StringConstraints, model_validator
from pydantic_core import PydanticCustomError

from remembrancer.domain.requests import (
    MAX_CONTENT,
    MAX_RECORDS,
    Closed,
    Domain,
    Instant,
    Name,
    PublicId,
    Reason,
    Subject,
    Text500,
    check_window,
    not_blank,
)
from remembrancer.domain.tenant_settings import Days, Kind, Space

Content = Annotated[str, StringConstraints(min_length=1, max_length=MAX_CONTENT), AfterValidator(not_blank)]
SourceUri = Annotated[str, StringConstraints(min_length=1, max_length=2_000)]
Revision = Annotated[str, StringConstraints(min_length=1, max_length=200)]
Version = Annotated[int, Field(ge=1, le=2**31 - 1)]


class Imported(Closed):
    """What holds for every part of an imported text."""

    content: Content
    kind: Kind = "fact"
    domain: Domain | None = None
    author: Name | None = None
    observed_at: Instant | None = None
    expires_at: Instant | None = None
    data_subjects: Annotated[list[Subject], Field(max_length=20, default_factory=list)]
    target_space: Space | None = None


class MarkdownRequest(Imported):
    """With `source_uri` and `revision` the document replaces its earlier revision."""

    title: Text500 | None = None
    valid_from: Instant | None = None
    valid_to: Instant | None = None
    source_uri: SourceUri | None = None
    revision: Revision | None = None

    @model_validator(mode="after")
    def _coherent(self) -> MarkdownRequest:
        check_window(self.valid_from, self.valid_to)
        if (self.source_uri is None) != (self.revision is None):
            raise PydanticCustomError("source", "source_uri and revision come together")
        return self


class BlocksRequest(Imported):
    """A text of `## [ … ]` blocks, as agents keep their memory files."""


class UmpRequest(Closed):
    """Universal Memory Protocol records, each judged on its own."""

    records: Annotated[list[dict[str, Any]], Field(min_length=1, max_length=MAX_RECORDS)]
    domain: Domain | None = None
    target_space: Space | None = None
    """`private` keeps all of them to oneself, `team_shared` is for the records that name no visibility."""


class RetractRequest(Closed):
    """`undo` takes the retraction back."""

    version: Version
    undo: bool = False
    reason: Reason | None = None


class RenewRequest(Closed):
    """Without `expires_at` the kind's retention starts again now."""

    version: Version
    expires_at: Instant | None = None


class MergeRequest(Closed):
    """The entity of the path becomes part of `into`."""

    into: PublicId
    reason: Reason | None = None


class ExportRequest(Closed):
    format: Literal["ump", "jsonl"]
    spaces: Annotated[list[Space], Field(min_length=1, max_length=2)] | None = None
    domains: Annotated[list[Domain], Field(min_length=1, max_length=50)] | None = None
    kinds: Annotated[list[Kind], Field(min_length=1, max_length=5)] | None = None


class RetentionRequest(Closed):
    """Days by kind; a PUT says all of them."""

    fact: Days
    episodic: Days
    procedure: Days
    step: Days
    decision: Days
