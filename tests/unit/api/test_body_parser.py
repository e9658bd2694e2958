"""The body parser answers every byte string with an object or a problem, in linear time, echoing nothing."""

import base64
import json
import time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from remembrancer.api.body import MAX_BYTES, MAX_DEPTH, MAX_ERRORS, MAX_VALUES, check_media_type, parse_body
from remembrancer.domain.problems import Problem, to_document

NAMES = frozenset({"content", "title", "items", "n"})


def fault(raw, *, is_base64=False):
    with pytest.raises(Problem) as caught:
        parse_body(raw, is_base64=is_base64, names=NAMES)
    return caught.value


def codes(raw, **options):
    problem = fault(raw, **options)
    assert problem.code == "malformed_request"
    return [(error.pointer, error.code) for error in problem.errors]


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63) + 1, 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text('ab"\\[{é', max_size=3), inner, max_size=4)
    ),
    max_leaves=20,
)


@given(st.dictionaries(st.sampled_from(["content", "x"]), JSON), st.booleans(), st.booleans())
def test_every_json_object_reads_as_itself(value, is_base64, ensure_ascii):
    raw = json.dumps(value, ensure_ascii=ensure_ascii)
    sent = base64.b64encode(raw.encode()).decode() if is_base64 else raw
    parsed = parse_body(sent, is_base64=is_base64)
    assert parsed == value
    assert type(parsed) is dict


@given(st.binary(max_size=60) | st.text('[]{}",:\\u0 d8Nae1-.', max_size=40))
@example(b'{"a":"\xff"}')
@example('{"a":"\\')
@example("\ud800")
@example("[" * 5000)
@example("{}]")
@settings(max_examples=400)
def test_any_bytes_are_an_object_or_a_problem(raw):
    for is_base64 in (False, True):
        try:
            assert isinstance(parse_body(raw, is_base64=is_base64), dict)
        except Problem as problem:
            assert problem.status == 400
            assert problem.errors
            # Nothing that holds the body travels with the problem into a log.
            assert problem.__cause__ is None
            assert problem.__suppress_context__ or problem.__context__ is None


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        ("", "not_json"),
        ("{", "not_json"),
        ('{"a":1} x', "not_json"),
        ("\ufeff{}", "not_json"),
        ("{'a':1}", "not_json"),
        ('{"a":"\x01"}', "not_json"),
        ('{"a":01}', "not_json"),
        ("[]", "not_an_object"),
        ("null", "not_an_object"),
        ('"text"', "not_an_object"),
        ("NaN", "not_an_object"),
        (b"\xff{}", "not_utf8"),
        (b'{"a":"\xed\xa0\x80"}', "not_utf8"),
        (b'{"a":"\xc0\x80"}', "not_utf8"),
        ('{"a":"\ud800"}', "not_utf8"),
    ],
)
def test_what_is_not_a_json_object(raw, code):
    assert codes(raw) == [("", code)]


def test_base64_is_strict():
    assert parse_body("e30=", is_base64=True) == {}
    for raw in ("e30", "e3 0=", "é", "e30=!"):
        assert codes(raw, is_base64=True) == [("", "not_base64")]


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ('{"content":"\\u0000"}', [("/content", "nul_character")]),
        ('{"content":"a\\ud83d"}', [("/content", "lone_surrogate")]),
        ('{"content":"\\udc00\\ud800"}', [("/content", "lone_surrogate")]),
        ('{"items":[1,{"title":"\\u0000"}]}', [("/items/1/title", "nul_character")]),
        ('{"n":NaN}', [("/n", "number_not_finite")]),
        (
            '{"items":[-Infinity,Infinity]}',
            [("/items/0", "number_not_finite"), ("/items/1", "number_not_finite")],
        ),
        ('{"n":9223372036854775808}', [("/n", "number_too_large")]),
        ('{"n":-9223372036854775808}', [("/n", "number_too_large")]),
        ('{"n":1e400}', [("/n", "number_too_large")]),
        ('{"n":' + "9" * 100_000 + "}", [("/n", "number_too_large")]),
        ('{"n":0.' + "9" * 100_000 + "}", [("/n", "number_too_large")]),
        ('{"title":"a","title":"a"}', [("", "duplicate_name")]),
        ('{"title":"a","t\\u0069tle":"b"}', [("", "duplicate_name")]),
        ('{"items":[{"n":1},{"n":1,"n":2}]}', [("/items/1", "duplicate_name")]),
    ],
    ids=lambda value: str(value)[:40],
)
def test_faults_have_a_place(raw, expected):
    assert codes(raw) == expected


def test_a_surrogate_pair_is_a_character():
    assert parse_body('{"content":"\\ud83d\\ude00"}', is_base64=False) == {"content": "\U0001f600"}


def test_the_largest_numbers_pass():
    assert parse_body('{"n":9223372036854775807}', is_base64=False)["n"] == 2**63 - 1
    assert parse_body('{"n":1.7976931348623157e308}', is_base64=False)["n"] == 1.7976931348623157e308


def test_unknown_names_and_values_are_never_repeated():
    raw = '{"canary":{"content":["canary\\u0000",NaN]},"canary\\ud800":1,"content":{"canary":NaN}}'
    problem = fault(raw)
    assert {(error.pointer, error.code) for error in problem.errors} == {
        ("", "nul_character"),
        ("", "number_not_finite"),
        ("", "lone_surrogate"),
        ("/content", "number_not_finite"),
    }
    assert "canary" not in json.dumps(to_document(problem, "c-1"))


def test_the_list_of_faults_is_bounded():
    raw = '{"items":[' + ",".join(["NaN"] * 1000) + "]}"
    assert len(fault(raw).errors) == MAX_ERRORS


def nested(levels):
    return '{"a":' * levels + "1" + "}" * levels


def test_depth_is_bounded_exactly():
    assert parse_body(nested(MAX_DEPTH), is_base64=False)
    assert codes(nested(MAX_DEPTH + 1)) == [("", "too_deep")]
    lists = '{"a":' + "[" * MAX_DEPTH + "]" * MAX_DEPTH + "}"
    assert codes(lists) == [("", "too_deep")]


def test_brackets_in_strings_are_not_depth():
    value = {"content": "[" * 100 + '"\\' + "{" * 100, "\\": '"[[[['}
    assert parse_body(json.dumps(value), is_base64=False) == value


def test_the_size_is_bounded_exactly():
    def body(size):
        return b'{"content":"' + b"a" * (size - 14) + b'"}'

    assert len(body(MAX_BYTES)) == MAX_BYTES
    assert parse_body(body(MAX_BYTES), is_base64=False)
    assert parse_body(base64.b64encode(body(MAX_BYTES)), is_base64=True)
    assert fault(body(MAX_BYTES + 1)).code == "input_budget_exceeded"
    assert fault(base64.b64encode(body(MAX_BYTES + 1)), is_base64=True).code == "input_budget_exceeded"
    # Bytes count, not characters.
    assert fault('{"content":"' + "é" * (MAX_BYTES // 2) + '"}').code == "input_budget_exceeded"


def test_the_number_of_values_is_bounded():
    def body(count):
        return '{"content":",[,","items":[' + ",".join("1" * count) + "]}"

    # The object, its two members' comma and the list's bracket count too.
    assert len(parse_body(body(MAX_VALUES - 2), is_base64=False)["items"]) == MAX_VALUES - 2
    assert fault(body(MAX_VALUES - 1)).code == "input_budget_exceeded"


@pytest.mark.parametrize(
    "raw",
    [
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b'{"a":"' + b"\\" * (MAX_BYTES - 10),
        b'{"a":"' + b'\\"' * (MAX_BYTES // 2 - 10),
        b'{"a":"' + b"\\u0000" * 800_000 + b'"}',
        b'{"a":[' + b"[]," * 1_700_000 + b"[]]}",
        b'{"a":[' + b"NaN," * 1_300_000 + b"1]}",
        b'{"a":[' + b'"",' * 1_700_000 + b'""]}',
        b'{"a":-' + b"9" * (MAX_BYTES - 20) + b"}",
        b'{"a":1e' + b"9" * (MAX_BYTES - 20) + b"}",
        b"{" + b'"a":1,' * 800_000 + b'"a":1}',
        b'"' * MAX_BYTES,
        b" " * (MAX_BYTES - 2) + b"{}",
        b'{"a":"' + b"a" * 10_000_000 + b'"}',
        b"\xff" * 10_000_000,
    ],
    ids=lambda raw: raw[:12].decode("latin-1"),
)
def test_hostile_bodies_take_linear_time(raw):
    started = time.process_time()
    try:
        parse_body(raw, is_base64=False, names=NAMES)
    except Problem as problem:
        assert problem.status in {400, 413}
    assert time.process_time() - started < 3


@pytest.mark.parametrize(
    "accepted",
    [
        "application/json",
        "Application/JSON",
        "application/json; charset=utf-8",
        'application/json;charset="UTF-8"',
    ],
)
def test_json_media_types_pass(accepted):
    check_media_type(accepted)
    check_media_type(accepted, "identity")


@pytest.mark.parametrize(
    ("content_type", "encoding"),
    [
        (None, None),
        ("", None),
        ("text/plain", None),
        ("application/json; charset=latin-1", None),
        ("application/json, text/plain", None),
        ("application/problem+json", None),
        ("application/json; profile=x", None),
        ("application/json", "gzip"),
    ],
)
def test_other_media_types_are_refused(content_type, encoding):
    with pytest.raises(Problem) as caught:
        check_media_type(content_type, encoding)
    assert caught.value.code == "unsupported_media_type"
