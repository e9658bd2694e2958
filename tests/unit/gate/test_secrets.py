import itertools
import random
import re
import string
import subprocess
import sys
import time
from importlib import import_module

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.secrets_measure import NAMED, PROVIDERS, innocents, measure
from remembrancer.domain.findings import PLACEHOLDER, Finding, mask, merge
from remembrancer.domain.flat import compiled, flatten
from remembrancer.domain.secret_rules import RULES
from remembrancer.domain.secrets import find_secrets, redact_secrets, secret_label

RNG = random.Random(7)
KEY_CHARACTERS = string.ascii_letters + string.digits


@pytest.mark.parametrize("kind", PROVIDERS)
def test_a_provider_key_in_prose_is_found_exactly(kind: str) -> None:
    for _ in range(5):
        key = PROVIDERS[kind](RNG)
        text = f"é Example from the manual: {key} – rotate it."
        redacted, findings = redact_secrets(text)
        assert len(findings) == 1
        assert redacted == f"é Example from the manual: {secret_label(findings[0].kind)} – rotate it."


@pytest.mark.parametrize("kind", NAMED)
def test_a_named_secret_is_found(kind: str) -> None:
    make, texts = NAMED[kind]
    for text in texts:
        secret = make(RNG)
        redacted, _ = redact_secrets(text.format(secret))
        assert secret not in redacted
        assert redacted.startswith(text.split("{}")[0].replace("{{", "{")[:12])


@pytest.mark.parametrize("index", range(len(innocents(random.Random(0)))))
def test_look_alikes_are_no_secrets(index: int) -> None:
    for seed in range(5):
        text = innocents(random.Random(seed))[index]
        assert [text[f.start : f.end] for f in find_secrets(text)] == []


def test_recall_and_precision_on_the_generated_corpus() -> None:
    scores = measure(seed=11, rounds=1)
    assert scores["secrets_recall"] >= 0.98
    assert scores["secrets_precision"] >= 0.98
    assert len(scores["kinds"]) >= 40


def test_kinds_are_many_and_make_valid_placeholders() -> None:
    kinds = {rule.kind for rule in RULES}
    assert len(kinds) >= 40
    for kind in kinds:
        assert PLACEHOLDER.fullmatch(secret_label(kind))


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.kind)
def test_a_rule_compiles_and_its_hints_are_lower_case(rule) -> None:
    assert compiled(rule.pattern).groups <= 1
    assert all(hint == hint.lower() for hint in rule.hints)


@pytest.mark.parametrize(
    "invisible", ["\u200b", "\ufeff", "\u00ad", "\u200d", "\u2060", "\U000e0041", "\u0301"]
)
def test_invisible_characters_hide_nothing_and_the_span_covers_them(invisible: str) -> None:
    key = PROVIDERS["github_classic"](RNG)
    split = invisible.join(key)
    text = f"ключ: {split}; ok"
    (finding,) = find_secrets(text)
    assert text[finding.start : finding.end] == split


def test_full_width_letters_hide_nothing() -> None:
    key = PROVIDERS["aws_access_key"](RNG)
    wide = "".join(chr(ord(character) + 0xFEE0) for character in key)
    assert redact_secrets(f"id {wide}!")[0] == "id [redacted:secret:aws_access_key]!"


def test_a_private_key_goes_as_a_whole_block_also_escaped_and_cut_off() -> None:
    key = PROVIDERS["rsa_key"](RNG)
    for block in (key, key.replace("\n", "\\n"), key.replace("\n", "\r\n"), key.rsplit("\n", 2)[0]):
        redacted, _ = redact_secrets(f'{{"key": "{block}", "n": 1}}')
        assert redacted == '{"key": "[redacted:secret:private_key]", "n": 1}'


def test_the_password_goes_and_the_address_stays() -> None:
    url = "postgres://app:" + "hunter" + "2#x" + "@db.internal:5432/main"
    redacted = "postgres://app:[redacted:secret:connection_string]@db.internal:5432/main"
    assert redact_secrets(url)[0] == redacted


@pytest.mark.parametrize(
    "reference", ["${DB_PASS}", "<password>", "****", "{{ secret }}", "$PASSWORD", "%(pw)s"]
)
def test_a_variable_in_a_url_is_no_password(reference: str) -> None:
    assert find_secrets(f"postgres://app:{reference}@db/main") == ()


def test_redaction_is_stable_inside_names_and_values() -> None:
    text = "password=" + "Winter" + "2931!;api_key=" + PROVIDERS["stripe_live"](RNG) + "@http://x"
    once, findings = redact_secrets(text)
    assert len(findings) == 2
    assert redact_secrets(once) == (once, ())


# Every rule of the maintained detector must lie inside ours, again at every upgrade of it.
PEERS = ["aws", "azure_storage_key", "discord", "github_token", "gitlab_token", "mailchimp", "npm", "openai",
         "private_key", "pypi_token", "sendgrid", "slack", "square_oauth", "stripe", "telegram_token"]  # fmt: skip


@pytest.mark.parametrize("name", PEERS)
def test_what_detect_secrets_finds_is_found_here(name: str) -> None:
    module = import_module(f"detect_secrets.plugins.{name}")
    patterns = next(
        value.denylist
        for value in vars(module).values()
        if isinstance(value, type) and value.__module__ == module.__name__ and "denylist" in vars(value)
    )

    for pattern in patterns:
        tree = re._parser.parse(pattern.pattern, pattern.flags)
        for _ in range(10):
            example = _random_match(tree)
            if example.startswith("PuTTY"):
                example += "\nPrivate-Lines: 1\n" + "".join(RNG.choices(KEY_CHARACTERS, k=64))
            elif name == "private_key":
                example += "\n" + "".join(RNG.choices(KEY_CHARACTERS, k=64))
            assert find_secrets(f"{example} ") != (), example


def _random_match(tree) -> str:
    """A random string that a parsed pattern of `re` matches, of the length that keys have."""
    pieces: list[str] = []
    for operation, argument in tree:
        match str(operation):
            case "LITERAL":
                pieces.append(chr(argument))
            case "ANY" | "NOT_LITERAL":
                pieces.append(RNG.choice(KEY_CHARACTERS))
            case "IN":
                pieces.append(
                    RNG.choice([c for c in KEY_CHARACTERS + " -_+/\"'" if _in_class(argument, ord(c))])
                )
            case "MAX_REPEAT" | "MIN_REPEAT":
                low, high, repeated = argument
                times = low if high == low else RNG.randint(low, max(low, min(int(high), low + 8)))
                times = max(times, 10) if low == 1 and int(high) > 1000 else times
                pieces += [_random_match(repeated) for _ in range(times)]
            case "SUBPATTERN":
                pieces.append(_random_match(argument[3]))
            case "BRANCH":
                pieces.append(_random_match(RNG.choice(argument[1])))
            case "ASSERT_NOT" | "AT":
                pass
            case other:
                raise AssertionError(f"no text is made for {other}")
    return "".join(pieces)


def _in_class(members, code: int) -> bool:
    categories = {
        "CATEGORY_DIGIT": "0123456789",
        "CATEGORY_SPACE": " ",
        "CATEGORY_WORD": KEY_CHARACTERS + "_",
    }
    for operation, argument in members:
        if str(operation) == "LITERAL" and argument == code:
            return True
        if str(operation) == "RANGE" and argument[0] <= code <= argument[1]:
            return True
        if str(operation) == "CATEGORY" and chr(code) in categories[str(argument)]:
            return True
    return False


@given(st.text(st.one_of(st.characters(codec=None), st.sampled_from('password=:tkn"@/.A1'))))
def test_spans_are_inside_the_text(text: str) -> None:
    assert len(flatten(text).data) <= len(text)
    for finding in find_secrets(text):
        assert 0 <= finding.start < finding.end <= len(text)


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 30), st.integers(0, 30))))
def test_merged_findings_are_disjoint_and_cover_the_same(spans) -> None:
    findings = [Finding(kind, min(a, b), max(a, b)) for kind, a, b in spans]
    merged = merge(findings)
    assert all(left.end <= right.start for left, right in itertools.pairwise(merged))
    covered = {position for f in findings for position in range(f.start, f.end)}
    assert covered == {position for f in merged for position in range(f.start, f.end)}
    text = "".join(chr(0x100 + i) for i in range(31))
    assert mask(text, findings, lambda _: "") == "".join(c for i, c in enumerate(text) if i not in covered)


@pytest.mark.parametrize(
    "unit",
    [
        "A",
        "eyJhbGciOiJI.",
        "password=",
        "BEGIN PRIVATE KEY\n" + "A" * 20 + "\n",
        "http://a:b@",
        "login a password ",
    ],
)
def test_time_grows_linearly(unit: str) -> None:
    seconds = []
    for size in (100_000, 400_000):
        text = (unit * (size // len(unit) + 1))[:size]
        started = time.process_time()
        find_secrets(text)
        seconds.append(time.process_time() - started)
    assert seconds[1] < 8 * seconds[0] + 0.3


def test_import_stays_small() -> None:
    """No HTTP client, YAML or telephone metadata is loaded before a text needs it."""
    code = (
        "import sys, remembrancer.domain.sanitize as s; s.sanitize_read('Sam likes tea.', reveal_pii=False);"
        "print([m for m in ('requests', 'yaml', 'detect_secrets', 'phonenumbers', 'stdnum') if m in sys.modules])"
    )
    path = "layers/core/python"
    root = __file__.rsplit("/tests/", 1)[0]
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=f"{root}/{path}", capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() == "[]"
