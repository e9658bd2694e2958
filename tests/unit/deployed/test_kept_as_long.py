"""What the deployment keeps outside the database goes when the rows that link to it do."""

from __future__ import annotations

from infra.settings import REPORT_DAYS
from remembrancer.store import reports


def test_a_report_that_is_listed_still_has_its_page() -> None:
    assert reports.KEPT.days == REPORT_DAYS
