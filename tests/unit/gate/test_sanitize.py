import random
import re
import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bench.secrets_measure import NAMED, PROVIDERS
from remembrancer.domain.markup import to_plain
from remembrancer.domain.pii import find_pii, maskable
from remembrancer.domain.sanitize import mask_source_prompt, sanitize_read
from remembrancer.domain.secrets import find_secrets

KEYS = [make(random.Random(3)) for make in PROVIDERS.values()] + [
    text.format(make(random.Random(3))) for make, texts in NAMED.values() for text in texts
]
PIECES = [
    *"[]()!<>`~\"'-=*_+#:/\\@ \n\r\t.a1", "![", "](", "][", "]:", "<img src=x>", "<a href=x>", "</a>", "</memory>",
    "<|im_end|>", "<!--", "```", "~~~", "---", "http://e.example/x", "javascript:", "data:text/html,", "john@acme.com",
    "+44 20 7946 0958", "\u200b", "\u200d", "\ufe0f", "\u202e", "\ud800", "[redacted:email]", "[redacted:secret:jwt]",
    "password=", "token: ", "secret", "postgres://a:", "[/INST]", "[INST]", "é", "密", *KEYS,
]  # fmt: skip
TEXT = st.lists(
    st.one_of(st.sampled_from(PIECES), st.text(st.characters(codec=None), max_size=6)), max_size=12
)
HOSTILE = TEXT.map("".join)


@given(HOSTILE, st.booleans())
@example("john@acme.com(http://e.example)", False)
@example("!john@acme.com: http://e.example\n\n[redacted:email]", False)
@example("[x][](/u)(http://e.example)", False)
@example("<<img>script>alert", True)
def test_no_detector_fires_on_the_output_and_a_second_pass_changes_nothing(
    text: str, reveal_pii: bool
) -> None:
    output = sanitize_read(text, reveal_pii=reveal_pii)
    assert find_secrets(output) == ()
    if not reveal_pii:
        assert maskable(find_pii(output)) == ()
    assert sanitize_read(output, reveal_pii=reveal_pii) == output


@given(HOSTILE, st.booleans())
def test_no_active_markup_and_no_fence_survives(text: str, reveal_pii: bool) -> None:
    output = sanitize_read(text, reveal_pii=reveal_pii)
    assert not re.search(r"<[A-Za-z/!?|]|\[/[A-Za-z]|\[INST\]", output)
    assert not re.search(r"```|~~~|\"\"\"|'''", output)
    assert not re.search(r"(?m)^[ \t]*(?:---|===|\*\*\*|___|\+\+\+|###|<<<|>>>)", output)
    assert "](" not in output
    assert not re.search(r"(?m)^[ \t]*\[[^\[\]]+\]:", output)
    assert "javascript:" not in re.sub(r"[\x00-\x20]", "", output).casefold()


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize(
    "frame", ["```\n{}\n```", "[x]({})", "**{}**", '"""{}"""', "<code>{}</code>", "> {}"]
)
def test_reducing_markup_never_breaks_a_secret_out_of_detection(key: str, frame: str) -> None:
    text = frame.replace("{}", key)
    output = sanitize_read(text, reveal_pii=True)
    leaked = [key[f.start : f.end] for f in find_secrets(key) if key[f.start : f.end] in output]
    assert leaked == []


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ('see [the page](https://a.example/x_(y)?q=1 "t") now', "see the page now"),
        ("![a cat](https://e.example/c.png?q=secret)!", "a cat!"),
        ("[![badge](https://e.example/b.svg)](https://e.example)", "badge"),
        ("[text][ref] and [ref][]\n\n[ref]: https://e.example", "text and ref\n\n[ref] : https://e.example"),
        ("<https://a.example/x> and <john@acme.com>", "https://a.example/x and john@acme.com"),
        ('<img src=x alt="a cat"> <IMG SRC=y>.', "a cat ."),
        ("<a href='javascript:alert(1)'>click</a>", "click"),
        ("matrix[i][j] and table[0](row) and f(x)[1]", "matrix[i][j] and table[0] (row) and f(x)[1]"),
        ("- [ ] buy milk\n- [x] done", "- [ ] buy milk\n- [x] done"),
        ("a < b and 3<4 and x <- y", "a < b and 3<4 and x <- y"),
        ("Vec<u8> and </memory> and <!-- hi -->", "Vec‹u8> and ‹/memory> and ‹!-- hi -->"),
        ("```py\nx\n```", "``py\nx\n``"),
        ("a---b === c\n---\n  ===== END =====", "a---b === c\n--\n  == END ====="),
        (
            "JAVA\tSCRIPT:x vbscript:y data:text/html,z data: fine",
            "JAVA\tSCRIPT꞉x vbscript꞉y data꞉text/html,z data: fine",
        ),
        ("[a](javascript:alert(1)) [b](JaVaScRiPt:x)", "a b"),
        ("[unclosed](http://e.example and more", "[unclosed] (http://e.example and more"),
    ],
)
def test_markup_becomes_its_text(text: str, plain: str) -> None:
    assert to_plain(text) == plain


def test_the_order_of_the_steps() -> None:
    assert sanitize_read("john\u200b@acme.com", reveal_pii=False) == "[redacted:email]"
    assert sanitize_read("[john](x.example)@acme.com", reveal_pii=False).endswith("@acme.com")
    assert sanitize_read("[john](https://x.example)@acme.com", reveal_pii=False) == "[redacted:email]"


def test_pii_is_revealed_to_those_who_may_and_secrets_to_none() -> None:
    key = PROVIDERS["github_classic"](random.Random(1))
    text = f"john@acme.com has {key}"
    assert sanitize_read(text, reveal_pii=True) == "john@acme.com has [redacted:secret:github_token]"
    assert sanitize_read(text, reveal_pii=False) == "[redacted:email] has [redacted:secret:github_token]"


def test_a_source_prompt_is_masked_and_otherwise_kept() -> None:
    key = PROVIDERS["jwt"](random.Random(1))
    text = f"[doc](https://e.example) john@acme.com {key} ```"
    expected = "[doc](https://e.example) [redacted:email] [redacted:secret:jwt] ```"
    assert mask_source_prompt(text) == expected


def test_a_password_in_a_url_is_a_secret_and_no_address() -> None:
    text = "postgres://app:" + "Winter" + "2931@acme.com/db"
    assert sanitize_read(text, reveal_pii=False) == "postgres://app:[redacted:secret:connection_string]/db"


@pytest.mark.parametrize(
    "unit", ["[", "](", "[a](", "[a][b]", "<a", '<img alt="', "`", "java\n", "[a]:\n", "> ", "(", "é\u200d"]
)
def test_time_grows_linearly(unit: str) -> None:
    seconds = []
    for size in (100_000, 400_000):
        text = (unit * (size // len(unit) + 1))[:size]
        started = time.process_time()
        sanitize_read(text, reveal_pii=False)
        seconds.append(time.process_time() - started)
    assert seconds[1] < 8 * seconds[0] + 0.3


def test_a_megabyte_of_prose_takes_less_than_two_seconds() -> None:
    text = "Sam met Dr. Weiß at 10:30 on 2026-05-04; see https://a.example/x and <b>notes</b>. " * 12_000
    started = time.process_time()
    assert sanitize_read(text, reveal_pii=False).startswith("Sam met")
    assert time.process_time() - started < 2
