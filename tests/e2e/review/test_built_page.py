"""What is served: small, and nothing that the policy would have to forbid."""

from __future__ import annotations

import gzip
import re

import pytest

from local.site import SECURITY_HEADERS
from tests.e2e.review.live import ROOT

DIST = ROOT / "web" / "dist"
SCRIPT_BYTES = 150_000


@pytest.fixture(autouse=True)
def built() -> None:
    assert (DIST / "index.html").is_file(), "the page is not built: `make page`"


def test_all_scripts_together_are_small() -> None:
    scripts = list(DIST.rglob("*.js"))
    assert scripts
    assert sum(len(gzip.compress(path.read_bytes())) for path in scripts) < SCRIPT_BYTES


def test_the_document_holds_no_script_or_style_of_its_own_and_names_no_other_host() -> None:
    html = (DIST / "index.html").read_text()
    assert re.findall(r"<script(?![^>]*\bsrc=)", html) == []
    assert re.findall(r"<style|\sstyle=|\son[a-z]+=", html) == []
    assert re.findall(r"(?:src|href)=\"(?!\./)", html) == []


def test_nothing_in_the_sources_writes_markup_or_styles_of_elements() -> None:
    sources = [*(ROOT / "web" / "src").glob("*.ts"), *(ROOT / "web" / "src").glob("*.tsx")]
    forbidden = re.compile(
        r"dangerouslySetInnerHTML|innerHTML|outerHTML|insertAdjacent|document\.write|\sstyle=|\beval\("
    )
    assert sources
    assert [path.name for path in sources if forbidden.search(path.read_text())] == []


def test_the_policy_forbids_what_the_page_does_not_need() -> None:
    policy = dict(SECURITY_HEADERS)["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy and "http" not in policy and "*" not in policy
