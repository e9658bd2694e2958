import pytest
from hypothesis import given
from hypothesis import strategies as st

from remembrancer.domain.invisible import strip_invisible

REMOVED = [*map(chr, (0xAD, 0x61C, 0x180E, 0x200B, 0x200E, 0x200F, 0xFEFF, 0x2060, 0x2064, 0xE0001, 0xE0041, 0xE007F)),
           *map(chr, range(0x202A, 0x202F)), *map(chr, range(0x2066, 0x206A))]  # fmt: skip
HOSTILE = st.text(
    st.one_of(
        st.characters(codec=None),
        st.sampled_from([*REMOVED, "\u200c", "\u200d", "\ufe0f", "\U000e0101", "a", " ", "\n", "\ud800"]),
    )
)


@pytest.mark.parametrize("character", REMOVED, ids=lambda c: f"U+{ord(c):04X}")
def test_removable_characters_go_wherever_they_are(character: str) -> None:
    assert strip_invisible(f"{character}a{character}{character}b{character}") == "ab"


@pytest.mark.parametrize(
    "text",
    [
        "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",  # Persian, with ZWNJ inside a word
        "\u0dc1\u0dca\u200d\u0dbb\u0dd3",  # Sinhala, with ZWJ inside a word
        "\u0647\u200d. \u0642",  # a Persian abbreviation ends with ZWJ
        "\U0001f469\u200d\U0001f4bb",  # woman technologist
        "\u2764\ufe0f\u200d\U0001f525",  # heart on fire: selector, then joiner
        "\U0001f3f3\ufe0f\u200d\U0001f308",  # rainbow flag
        "1\ufe0f\u20e3 \u845b\U000e0100",  # keycap; an ideographic variant
        "na\u00efve \u4f60\u597d \x00 \ud800 plain",
    ],
)
def test_joiners_and_selectors_that_shape_words_and_emoji_stay(text: str) -> None:
    assert strip_invisible(text) == text


def test_joiners_and_selectors_that_shape_nothing_go() -> None:
    hidden = "".join(chr(0xFE00 + byte % 16) for byte in b"secret")
    assert strip_invisible("\U0001f600" + hidden) == "\U0001f600" + hidden[0]
    assert strip_invisible("\u200dab \ufe0fcd\n\u200c") == "ab cd\n"


def test_tags_behind_a_flag_go() -> None:
    assert strip_invisible("\U0001f3f4\U000e0067\U000e0062\U000e007f!") == "\U0001f3f4!"


@given(HOSTILE)
def test_stripping_is_idempotent_and_only_removes(text: str) -> None:
    stripped = strip_invisible(text)
    assert strip_invisible(stripped) == stripped
    assert not set(stripped) & set(REMOVED)
    rest = iter(text)
    assert all(character in rest for character in stripped)
    assert [c for c in text if c.isalnum()] == [c for c in stripped if c.isalnum()]
