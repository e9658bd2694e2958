"""A signed request is accepted as it was signed, by the registered key, in its time; never a crash."""

import base64
import dataclasses
import hashlib
from datetime import UTC, datetime, timedelta

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)
from hypothesis import example, given, settings
from hypothesis import strategies as st

from remembrancer.adapters.signatures import (
    COMPONENTS,
    TAG,
    one_spelling,
    sign_request,
    verify_signed_request,
)
from remembrancer.domain.problems import Problem
from remembrancer.domain.signing import KeyRecord

NOW = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)
URI = "https://memory.example/v1/purge"
STAGE_URI = "https://abc.execute-api.eu-central-1.example/prod/v1/purge"
BODY = b'{"ids":["mem_1"],"dry_run":false}'
PRIVATE = {
    "ed25519": ed25519.Ed25519PrivateKey.generate(),
    "ecdsa-p256-sha256": ec.generate_private_key(ec.SECP256R1()),
}


def public_pem(private_key):
    return private_key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()


KEYS = {
    name: KeyRecord(f"key-{name}", name, public_pem(private), NOW - timedelta(days=2))
    for name, private in PRIVATE.items()
}
BY_ID = {record.key_id: record for record in KEYS.values()}


def signed(algorithm="ed25519", **options):
    arguments = {
        "method": "POST",
        "target_uri": URI,
        "body": BODY,
        "key_id": f"key-{algorithm}",
        "algorithm": algorithm,
        "private_key": PRIVATE[algorithm],
        "now": NOW,
    } | options
    return sign_request(**arguments)


def verified(headers, **options):
    arguments = {
        "method": "POST",
        "target_uris": [STAGE_URI, URI],
        "body": BODY,
        "keys": BY_ID.get,
        "now": NOW + timedelta(seconds=1),
    } | options
    return verify_signed_request(headers=headers, **arguments)


def refused(headers, **options):
    with pytest.raises(Problem) as caught:
        verified(headers, **options)
    assert caught.value.status == 401
    assert caught.value.__cause__ is None
    return caught.value.code, *(error.code for error in caught.value.errors)


def raw_signature(field):
    return base64.b64decode(field.removeprefix("admin=:").removesuffix(":"))


@pytest.fixture(params=PRIVATE)
def algorithm(request):
    return request.param


def test_a_signed_request_verifies(algorithm):
    headers = signed(algorithm, nonce="nonce-nonce-nonce-1")
    result = verified(headers)
    assert (result.key_id, result.nonce) == (f"key-{algorithm}", "nonce-nonce-nonce-1")
    assert (result.created, result.expires) == (NOW, NOW + timedelta(seconds=120))


def test_the_evidence_is_the_digest_of_the_signature_base():
    headers = signed(nonce="nonce-nonce-nonce-1")
    digest = base64.b64encode(hashlib.sha256(BODY).digest()).decode()
    created = int(NOW.timestamp())
    parameters = (
        '("@method" "@target-uri" "content-digest" "content-type")'
        f';created={created};keyid="key-ed25519";alg="ed25519";expires={created + 120}'
        f';nonce="nonce-nonce-nonce-1";tag="{TAG}"'
    )
    assert headers["Signature-Input"] == f"admin={parameters}"
    base = (
        f'"@method": POST\n"@target-uri": {URI}\n"content-digest": sha-256=:{digest}:\n'
        f'"content-type": application/json\n"@signature-params": {parameters}'
    ).encode()
    assert verified(headers).base_digest == hashlib.sha256(base).digest()
    raw = raw_signature(headers["Signature"])
    PRIVATE["ed25519"].public_key().verify(raw, base)


def test_ecdsa_signatures_are_raw_r_and_s_as_a_browser_makes_them():
    headers = signed("ecdsa-p256-sha256")
    raw = raw_signature(headers["Signature"])
    assert len(raw) == 64
    der = PRIVATE["ecdsa-p256-sha256"].sign(b"any", ec.ECDSA(hashes.SHA256()))
    assert decode_dss_signature(der)
    swapped = headers | {"Signature": f"admin=:{base64.b64encode(der).decode()}:"}
    assert refused(swapped) == ("signature_invalid", "not_verified")


@pytest.mark.parametrize("body", [b"", b"{}", bytes(range(256)), "é".encode()])
def test_any_body_can_be_signed(algorithm, body):
    assert verified(signed(algorithm, body=body), body=body)


def test_header_names_are_case_insensitive():
    assert verified({name.upper(): value for name, value in signed().items()})


def test_other_headers_do_not_matter():
    assert verified(signed() | {"Authorization": "Bearer x", "X-Odd": "\ud800\0"})


def test_any_public_base_may_be_signed():
    assert verified(signed(target_uri=STAGE_URI))
    assert refused(signed(), target_uris=[STAGE_URI]) == ("signature_invalid", "not_verified")
    assert refused(signed(), target_uris=[]) == ("signature_invalid", "not_verified")


ALTERATIONS = {
    "method": ({}, {"method": "PUT"}, "not_verified"),
    "path": ({}, {"target_uris": [URI + "s"]}, "not_verified"),
    "host": ({}, {"target_uris": ["https://other.example/v1/purge"]}, "not_verified"),
    "scheme": ({}, {"target_uris": [URI.replace("https", "http")]}, "not_verified"),
    "query": ({}, {"target_uris": [URI + "?dry_run=false"]}, "not_verified"),
    "body": ({}, {"body": BODY.replace(b"1", b"2")}, "body_altered"),
    "empty body": ({}, {"body": b""}, "body_altered"),
    "content type": ({"Content-Type": "text/plain"}, {}, "not_verified"),
    "digest": ({"Content-Digest": f"sha-256=:{base64.b64encode(bytes(32)).decode()}:"}, {}, "not_verified"),
    "no digest": ({"Content-Digest": None}, {}, "not_verified"),
    "no content type": ({"Content-Type": None}, {}, "not_verified"),
    "no signature": ({"Signature": None}, {}, "not_verified"),
    "no input": ({"Signature-Input": None}, {}, "header_malformed"),
    "label": ({"Signature": "other=:AAAA:"}, {}, "not_verified"),
    "not bytes": ({"Signature": 'admin="AAAA"'}, {}, "not_verified"),
    "not ascii": ({"Signature-Input": "admin=é"}, {}, "header_malformed"),
    "surrogate": ({"Signature-Input": "\ud800"}, {}, "header_malformed"),
    "surrogate signature": ({"Signature": "\ud800"}, {}, "not_verified"),
    "huge": ({"Signature-Input": "a=1," * 1_000_000}, {}, "header_malformed"),
    "huge signature": ({"Signature": "a" * 1_000_000}, {}, "header_malformed"),
    "an item": ({"Signature-Input": "admin=1"}, {}, "header_malformed"),
    "a flag": ({"Signature-Input": "admin"}, {}, "header_malformed"),
}


@pytest.mark.parametrize("case", ALTERATIONS)
def test_what_was_altered_is_refused(algorithm, case):
    changed, options, reason = ALTERATIONS[case]
    headers = {name: value for name, value in (signed(algorithm) | changed).items() if value is not None}
    assert refused(headers, **options) == ("signature_invalid", reason)


@pytest.mark.parametrize("parameter", ["created", "expires", "keyid", "alg", "nonce", "tag"])
def test_a_parameter_removed_after_signing_is_refused(parameter):
    kept = [part for part in signed()["Signature-Input"].split(";") if not part.startswith(parameter)]
    assert refused(signed() | {"Signature-Input": ";".join(kept)})[0] == "signature_invalid"


def test_no_signature_at_all():
    assert refused({}) == ("signature_missing",)
    assert refused({"Content-Type": "application/json"}) == ("signature_missing",)


def test_a_repeated_header_is_refused():
    assert refused(signed() | {"content-type": "application/json"}) == (
        "signature_invalid",
        "header_repeated",
    )


def test_an_unknown_key_is_refused():
    assert refused(signed(), keys=lambda _: None) == ("signature_invalid", "key_unknown")


def test_the_wrong_key_is_refused(algorithm):
    own = KEYS[algorithm]
    stranger = {
        "ed25519": ed25519.Ed25519PrivateKey.generate,
        "ecdsa-p256-sha256": lambda: ec.generate_private_key(ec.SECP256R1()),
    }[algorithm]()
    other = dataclasses.replace(own, public_key=public_pem(stranger))
    assert refused(signed(algorithm), keys=lambda _: other) == ("signature_invalid", "not_verified")


def test_the_algorithm_is_the_records():
    for signing, registered in (("ed25519", "ecdsa-p256-sha256"), ("ecdsa-p256-sha256", "ed25519")):
        headers = signed(signing)
        record = KEYS[registered]
        assert refused(headers, keys=lambda _, record=record: record) == ("signature_invalid", "not_verified")
        # A record of the one algorithm with a key of the other fails as well, and does not crash.
        mixed = dataclasses.replace(record, public_key=KEYS[signing].public_key)
        assert refused(headers, keys=lambda _, mixed=mixed: mixed) == ("signature_invalid", "not_verified")


def test_a_key_works_only_from_its_time_to_its_revocation():
    own = KEYS["ed25519"]
    early = dataclasses.replace(own, usable_from=NOW + timedelta(hours=1))
    revoked = dataclasses.replace(own, revoked_at=NOW)
    later = dataclasses.replace(own, revoked_at=NOW + timedelta(hours=1))
    assert refused(signed(), keys=lambda _: early) == ("signature_invalid", "key_not_usable")
    assert refused(signed(), keys=lambda _: revoked) == ("signature_invalid", "key_not_usable")
    assert verified(signed(), keys=lambda _: later)


@pytest.mark.parametrize(
    ("seconds", "outcome"), [(-31, "late"), (-30, "ok"), (119, "ok"), (120, "late"), (9999, "late")]
)
def test_only_in_its_time(seconds, outcome):
    now = NOW + timedelta(seconds=seconds)
    if outcome == "ok":
        assert verified(signed(), now=now)
    else:
        assert refused(signed(), now=now) == ("signature_expired", "out_of_time")


@pytest.mark.parametrize(
    ("lifetime", "accepted"), [(1, True), (300, True), (301, False), (0, False), (-5, False), (10**12, False)]
)
def test_the_lifetime_is_bounded(lifetime, accepted):
    if lifetime == 10**12:
        headers = unusual(expires=int(NOW.timestamp()) + lifetime)
    else:
        headers = signed(lifetime_s=lifetime)
    if accepted:
        assert verified(headers, now=NOW)
    else:
        assert refused(headers, now=NOW) == ("signature_invalid", "lifetime_wrong")


def unusual(components=COMPONENTS, headers=None, uri=URI, **parameters):
    """A request correctly signed by the right key over an unusual base, written without the library."""
    created = int(NOW.timestamp())
    parameters = {
        "created": created,
        "keyid": '"key-ed25519"',
        "expires": created + 60,
        "nonce": '"nonce-nonce-nonce-1"',
        "tag": f'"{TAG}"',
    } | parameters
    digest = base64.b64encode(hashlib.sha256(BODY).digest()).decode()
    fields = {"Content-Type": "application/json", "Content-Digest": f"sha-256=:{digest}:"} | (headers or {})
    values = {"@method": "POST", "@target-uri": uri, "@authority": "memory.example"}
    values |= {name.lower(): value for name, value in fields.items()}
    text = "(" + " ".join(f'"{name}"' for name in components) + ")"
    text += "".join(f";{name}={value}" for name, value in parameters.items() if value is not None)
    lines = [f'"{name}": {values[name]}' for name in components] + [f'"@signature-params": {text}']
    signature = PRIVATE["ed25519"].sign("\n".join(lines).encode())
    return fields | {
        "Signature-Input": f"sig={text}",
        "Signature": f"sig=:{base64.b64encode(signature).decode()}:",
    }


def test_another_implementation_verifies():
    assert verified(unusual())
    assert verified(
        unusual(components=("content-type", "@authority", "content-digest", "@target-uri", "@method"))
    )


@pytest.mark.parametrize("missing", COMPONENTS)
def test_every_component_is_required(missing):
    headers = unusual(components=[name for name in COMPONENTS if name != missing])
    assert refused(headers) == ("signature_invalid", "component_missing")


@pytest.mark.parametrize(
    ("parameters", "reason"),
    [
        ({"tag": None}, "tag_wrong"),
        ({"tag": '"remembrancer-admin-v2"'}, "tag_wrong"),
        ({"nonce": None}, "parameter_missing"),
        ({"nonce": '"short"'}, "parameter_missing"),
        ({"nonce": '"' + "n" * 129 + '"'}, "parameter_missing"),
        ({"nonce": '"nonce nonce nonce"'}, "parameter_missing"),
        ({"nonce": "1234567890123"}, "parameter_missing"),
        ({"keyid": None}, "parameter_missing"),
        ({"created": None}, "time_missing"),
        ({"expires": None}, "time_missing"),
        ({"expires": "?1"}, "time_missing"),
        ({"created": "1.5"}, "time_missing"),
        ({"alg": '"hmac-sha256"'}, "not_verified"),
        ({"alg": '"ecdsa-p256-sha256"'}, "not_verified"),
        ({"other": "1"}, "not_verified"),
    ],
)
def test_parameters_are_required_even_when_the_signature_holds(parameters, reason):
    assert refused(unusual(**parameters)) == ("signature_invalid", reason)


def test_a_digest_of_a_weak_or_unknown_algorithm_is_refused():
    for value in ("md5=:AAAA:", "sha-256=1", "sha-256=:AAAA:", "x"):
        assert refused(unusual(headers={"Content-Digest": value})) == ("signature_invalid", "body_altered")


def test_a_query_string_is_refused_even_when_signed():
    uri = URI + "?force=1"
    headers = unusual(uri=uri)
    assert refused(headers, target_uris=[uri]) == ("signature_invalid", "component_missing")


def test_two_signatures_are_refused():
    first, second = signed(), unusual()
    both = first | {name: f"{first[name]}, {second[name]}" for name in ("Signature-Input", "Signature")}
    assert refused(both) == ("signature_invalid", "several_signatures")
    repeated = first | {name: f"{first[name]}, {first[name]}" for name in ("Signature-Input", "Signature")}
    assert refused(repeated)[0] == "signature_invalid"


HEADERS = signed()


@given(st.sampled_from(sorted(HEADERS)), st.integers(0, 10**6), st.integers(0, 7))
@example("Signature", len(HEADERS["Signature"]) - 4, 0)
@example("Signature", len(HEADERS["Signature"]) - 4, 1)
@settings(max_examples=300)
def test_a_flipped_bit_is_never_accepted(name, place, bit):
    value = bytearray(HEADERS[name].encode())
    value[place % len(value)] ^= 1 << bit
    changed = value.decode("latin-1")
    try:
        verified(HEADERS | {name: changed})
    except Problem as problem:
        assert problem.status == 401
    else:
        # Base64 leaves bits of the last character unused: the same signature, spelled otherwise.
        assert name == "Signature"
        assert raw_signature(changed) == raw_signature(HEADERS[name])


@given(st.binary(min_size=1, max_size=40))
def test_another_body_is_never_accepted(body):
    assert refused(HEADERS, body=body) == ("signature_invalid", "body_altered")


GARBAGE = st.text(max_size=80) | st.text('()";=:,.@? *\\abcdefn1-\t\r\n', max_size=80)


@given(GARBAGE, GARBAGE, GARBAGE, st.booleans())
@example(
    'a=("@method";req "@query-param";name="x" "@status");created=1;expires=2;keyid="k"', "a=:AAAA:", "x", True
)
@settings(max_examples=400)
def test_garbage_is_a_problem_never_a_crash(signature_input, signature, digest, well_formed):
    if well_formed:
        tail = HEADERS["Signature-Input"].split(")", 1)[1]
        signature_input = f"admin=({signature_input}){tail}"
    headers = {"Signature-Input": signature_input, "Signature": signature, "Content-Digest": digest}
    assert refused(headers | {"Content-Type": "application/json"})[0] == "signature_invalid"


def test_registered_keys_must_be_public_keys_of_their_algorithm():
    for name, record in KEYS.items():
        assert one_spelling(name, record.public_key) == record.public_key
        assert one_spelling(name, record.public_key.replace("\n", "\r\n") + "\n\n") == record.public_key
    private_pem = PRIVATE["ed25519"].private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    p384 = public_pem(ec.generate_private_key(ec.SECP384R1()))
    wrong = [
        ("ed25519", KEYS["ecdsa-p256-sha256"].public_key),
        ("ecdsa-p256-sha256", KEYS["ed25519"].public_key),
        ("ecdsa-p256-sha256", p384),
        ("ed25519", private_pem),
        ("ed25519", ""),
        ("ed25519", "\ud800"),
        ("ed25519", "x" * 100_000),
    ]
    for name, pem in wrong:
        with pytest.raises(Problem) as caught:
            one_spelling(name, pem)
        assert [(error.pointer, error.code) for error in caught.value.errors] == [
            ("/public_key", "wrong_key")
        ]
