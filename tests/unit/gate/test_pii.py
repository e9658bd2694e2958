import itertools
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.pii_measure import FILE, measure
from remembrancer.domain.pii import find_pii, mask_pii, scan_pii

CARD = "4111 1111 1111 " + "1111"
AMEX = "3782 822463 " + "10005"
IBAN = "DE89 3704 0044 " + "0532 0130 00"
SSN = "460-89-" + "9847"
CORPUS = Path(__file__).resolve().parents[3].parent / "shared" / "data" / FILE


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("john@acme.com", "[redacted:email]"),
        ("john@acme.com wrote.", "[redacted:email] wrote."),
        ("Mail (john.o'neil+tag@mail.acme.co.uk), please", "Mail ([redacted:email]), please"),
        ("'john@acme.com' or <john@acme.com>", "'[redacted:email]' or <[redacted:email]>"),
        ("to=john@acme.com&x=1", "to=[redacted:email]&x=1"),
        ("mailto:john@acme.com?subject=x", "mailto:[redacted:email]?subject=x"),
        ("jörg@müller.de ist da", "[redacted:email] ist da"),
        ("联系john@acme.com。谢谢", "联系[redacted:email]。谢谢"),
        ("john＠acme．com", "[redacted:email]"),
        ("a@b.example, c@d.example", "[redacted:email], [redacted:email]"),
        ("Call +44 20 7946 0958 now", "Call [redacted:phone] now"),
        ("Call +1 (415) 555-2671 ext. 12.", "Call [redacted:phone]."),
        ("212-555-1234/212-555-9876", "[redacted:phone]/[redacted:phone]"),
        ("ring (415) 555-2671!", "ring [redacted:phone]!"),
        ("Büro: 030 901820-15, Frau Weiß", "Büro: [redacted:phone], Frau Weiß"),
        ("Tél. 01 42 68 53 00", "Tél. [redacted:phone]"),
        ("my number is 9498777106 at home", "my number is [redacted:phone] at home"),
        ("phone: ٠٣٠ ٩٠١٨٢٠", "phone: [redacted:phone]"),
        (f"card {CARD}, thanks", "card [redacted:card], thanks"),
        (f"card {CARD.replace(' ', '-')}.", "card [redacted:card]."),
        (f"{CARD.replace(' ', '')} exp 12/27", "[redacted:card] exp 12/27"),
        (f"amex {AMEX};", "amex [redacted:card];"),
        (f"pay to {IBAN} today", "pay to [redacted:iban] today"),
        (f"IBAN:{IBAN.replace(' ', '').lower()}.", "IBAN:[redacted:iban]."),
        (f"SSN {SSN}, born", "SSN [redacted:ssn], born"),
        ("ssn: " + SSN.replace("-", ""), "ssn: [redacted:ssn]"),
        ("ping 203.0.113.7 first", "ping 203.0.113.7 first"),
    ],
)
def test_the_span_is_exact_and_nothing_around_it_is_eaten(text: str, masked: str) -> None:
    assert mask_pii(text) == masked


@pytest.mark.parametrize(
    "text",
    [
        "2026-05-04 and 04.05.2026 and 5/4/2026, 2026-05-04T12:30:00Z",
        "from 2019-2024, 1990 - 2000, in 12 2024",
        "version 1.2.3.4, v10.20.30.40, release 3.11.2 and 2.14.0-rc1",
        "id 123e4567-e89b-12d3-a456-426614174000, commit 9fceb02d0ae598e95dc970b74767f19372d61af8",
        "@sam and @anna_k: see #1234567 and PR 20231",
        "order 20260504123, invoice no. 4711-0815-42, ticket 5551234567",
        "1746355200000 ms, 1746355200 s, 1746355200000000 us",
        "pi is 3.14159265358979 and e is 2.718281828459045",
        "1,234,567,890 rows, 12 345 678 people, 100 000 000 000 EUR",
        "10:30-11:45, 9-5, 24/7, 4x100m, 1080p, 16:9",
        "ISBN 978-3-16-148410-0 and EAN 4006381333931",
        "icon@2x.png, user@localhost, foo@bar, a@b, @scope/pkg@1.2.3",
        "git@github.com:team/repo.git",
        "lat 52.520008, lon 13.404954; 192x168; 255.255.255",
        "std::vector<int> and ab::cd, 12:34:56",
        "card 4111 1111 1111 1112 fails the checksum",
        "DE00 3704 0044 0532 0130 00 is no account",
        "000-12-3456 and 666-12-3456 and 912-12-3456 were never issued",
        "9000 1 2 3 4 5 6 7 8 9 10 11 12 13",
        "The phone rang 3 times in 2024; call 911.",
        "snowflake 1234567890123456789",
    ],
)
def test_dates_versions_ids_and_mentions_are_not_masked(text: str) -> None:
    assert mask_pii(text) == text


def test_ip_addresses_are_flagged_and_not_masked() -> None:
    assert scan_pii("from 203.0.113.7") == {"ip"}
    assert scan_pii("from 2001:db8::1 or fe80::1:2") == {"ip"}
    assert scan_pii("version 1.2.3.4 of 1.2.3.4.5") == frozenset()


def test_kinds_are_told_apart() -> None:
    text = f"{SSN} {IBAN} {CARD} a@b.example +14155552671"
    assert scan_pii(text) == {"ssn", "iban", "card", "email", "phone"}
    assert [f.kind for f in find_pii(text)] == ["ssn", "iban", "card", "email", "phone"]


def test_regions_decide_about_national_numbers_only() -> None:
    national, international = "(415) 555-2671", "+1 415 555 2671"
    assert scan_pii(national, regions=("US",)) == {"phone"}
    assert scan_pii(national, regions=()) == frozenset()
    assert scan_pii(international, regions=()) == {"phone"}


@pytest.mark.parametrize("invisible", ["\u200b", "\u200d", "\u00ad", "\ufeff", "\u2060"])
def test_invisible_characters_hide_nothing(invisible: str) -> None:
    split = invisible.join("john@acme.com")
    assert mask_pii(f"to {split}, now") == "to [redacted:email], now"


@given(st.text(st.one_of(st.characters(codec=None), st.sampled_from("0123456789@.+-() :"))))
def test_spans_are_inside_and_disjoint(text: str) -> None:
    findings = find_pii(text)
    assert all(0 <= f.start < f.end <= len(text) for f in findings)
    assert all(a.end <= b.start for a, b in itertools.pairwise(findings))


@given(
    st.sampled_from(["john.doe@acme.com", "+442079460958", CARD, IBAN, SSN]),
    st.text("abcxyz äß,;!\n", max_size=20),
    st.text("abcxyz äß,;!\n", max_size=20),
)
def test_known_data_is_masked_wherever_it_stands(datum: str, before: str, after: str) -> None:
    text = f"{before} {datum} {after}"
    (finding,) = find_pii(text)
    assert (finding.start, finding.end) == (len(before) + 1, len(before) + 1 + len(datum))


@pytest.mark.parametrize(
    "unit", ["1", "12 ", "0171 234 5678 ", "GB82 WEST 1234 5698 7654 ", "a@b.de ", "a:", "1.2.3.4 "]
)
def test_time_grows_linearly(unit: str) -> None:
    seconds = []
    for size in (100_000, 400_000):
        text = (unit * (size // len(unit) + 1))[:size]
        started = time.process_time()
        find_pii(text)
        seconds.append(time.process_time() - started)
    assert seconds[1] < 8 * seconds[0] + 0.3


def test_text_without_digits_or_at_signs_costs_little() -> None:
    text = "Sam likes green tea and long walks by the sea. " * 43
    find_pii(text)
    started = time.process_time()
    for _ in range(50):
        find_pii(text)
    assert (time.process_time() - started) / 50 < 0.001


def test_scores_on_labelled_sentences() -> None:
    if not CORPUS.exists():
        pytest.skip(f"needs the corpora beside the repository ({FILE})")
    scores = measure(CORPUS)
    assert scores["micro"]["f1"] >= 0.90
    assert scores["kinds"]["phone"]["f1"] >= 0.75
    assert min(row["f1"] for row in scores["kinds"].values()) >= 0.75


def test_ids_in_a_long_log_are_not_masked_because_it_is_long() -> None:
    log = "\n".join(f"row {number} done" for number in range(40_000_000, 40_003_000))
    assert mask_pii(log) == log
