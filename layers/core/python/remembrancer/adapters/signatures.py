"""Signed admin requests: RFC 9421 signatures over method, target URI, content type and the body's digest.

The library does the signature base and the cryptography; what it leaves open (tag, times, nonce, coverage,
algorithm) is fixed here. A replay is found by the store, where the nonce is inserted with the act itself.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import http_sf
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_public_key
from http_message_signatures import (
    ContentDigest,
    HTTPMessageSignaturesException,
    HTTPMessageSigner,
    HTTPMessageVerifier,
    HTTPSignatureAlgorithm,
    InvalidSignature,
    MappingKeyResolver,
    SigningKey,
)
from http_message_signatures.algorithms import ECDSA_P256_SHA256, ED25519

from remembrancer.domain.problems import Code, FieldError, Problem
from remembrancer.domain.signing import Algorithm, KeyRecord, VerifiedSignature

TAG = "remembrancer-admin-v1"
COMPONENTS = ("@method", "@target-uri", "content-digest", "content-type")
MAX_LIFETIME_S = 300
CLOCK_SKEW_S = 30
"""How far a signer's clock may run ahead of ours."""
MAX_HEADER_CHARS = 2048

ALGORITHMS: Mapping[Algorithm, type[HTTPSignatureAlgorithm]] = {
    "ed25519": ED25519,
    "ecdsa-p256-sha256": ECDSA_P256_SHA256,
}

_LABEL = "admin"
_NONCE = re.compile(r"[A-Za-z0-9_+/=-]{16,128}")


@dataclass
class _Request:
    """The message interface of the library."""

    method: str
    url: str
    headers: dict[str, str]


class _Verifier(HTTPMessageVerifier):
    """Leaves the times to `_check_times`: the library would read the machine's clock, not the given one."""

    def validate_created_and_expires(self, sig_input: object, max_age: timedelta | None = None) -> None:
        return


@dataclass(frozen=True)
class _Parameters:
    """The signature's parameters, of the right types."""

    created: int
    expires: int
    key_id: str
    nonce: str


def verify_signed_request(
    *,
    method: str,
    target_uris: Sequence[str],
    headers: Mapping[str, str],
    body: bytes,
    keys: Callable[[str], KeyRecord | None],
    now: datetime,
) -> VerifiedSignature:
    """Verify the one signature of a request against the key that it names.

    `target_uris`: the request's URI under each public base, since the function never sees the host that
    the client signed. `headers`: field lines of one name already joined by ", ". `keys`: the acting
    person's registered key of that id, or None.

    Raises Problem signature_missing, signature_expired (not in its time) or signature_invalid, whose
    FieldError code is the reason.
    """
    fields = _fields(headers)
    if "signature" not in fields and "signature-input" not in fields:
        raise Problem("signature_missing")
    parameters = _parameters(fields)
    key = keys(parameters.key_id)
    if key is None:
        raise _invalid("key_unknown", "No usable key of this person has this id.")
    if now < key.usable_from or (key.revoked_at is not None and now >= key.revoked_at):
        raise _invalid("key_not_usable", "The key is not yet usable, or was revoked.")
    base = _verified_base(method, target_uris, fields, key)
    try:
        ContentDigest.verify(fields["content-digest"], body)
    except InvalidSignature:
        raise _invalid("body_altered", "The content digest is not the body's.") from None
    _check_times(parameters, int(now.timestamp()))
    return VerifiedSignature(
        key_id=key.key_id,
        nonce=parameters.nonce,
        created=datetime.fromtimestamp(parameters.created, UTC),
        expires=datetime.fromtimestamp(parameters.expires, UTC),
        base_digest=hashlib.sha256(base).digest(),
    )


def sign_request(
    *,
    method: str,
    target_uri: str,
    body: bytes,
    key_id: str,
    algorithm: Algorithm,
    private_key: SigningKey,
    now: datetime,
    content_type: str = "application/json",
    lifetime_s: int = 120,
    nonce: str | None = None,
) -> dict[str, str]:
    """The four headers to send with the body: Content-Type, Content-Digest, Signature-Input, Signature.

    `private_key` is PEM bytes or a key object; the nonce is fresh unless given.
    """
    request = _Request(method, target_uri, {"Content-Type": content_type})
    signer = HTTPMessageSigner(
        signature_algorithm=ALGORITHMS[algorithm],
        key_resolver=MappingKeyResolver(public_keys={}, private_keys={key_id: private_key}),
    )
    signer.sign(
        request,
        key_id=key_id,
        created=now,
        expires=now + timedelta(seconds=lifetime_s),
        nonce=nonce or secrets.token_urlsafe(24),
        label=_LABEL,
        tag=TAG,
        covered_component_ids=COMPONENTS,
        body=body,
    )
    return request.headers


def one_spelling(algorithm: Algorithm, public_key: str) -> str:
    """The key as one PEM of its own, however it was written. Raises Problem invalid_input at /public_key unless the
    PEM is a public key of that algorithm."""
    try:
        key = load_pem_public_key(public_key.encode())
        ALGORITHMS[algorithm](public_key=key)
        return key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()
    except (ValueError, UnsupportedAlgorithm, HTTPMessageSignaturesException):
        error = FieldError("/public_key", "wrong_key", "A PEM public key of the named algorithm is required.")
        raise Problem("invalid_input", [error]) from None


def _invalid(reason: str, detail: str, code: Code = "signature_invalid") -> Problem:
    return Problem(code, [FieldError("", reason, detail)])


def _fields(headers: Mapping[str, str]) -> dict[str, str]:
    fields = {name.lower(): value for name, value in headers.items()}
    if len(fields) != len(headers):
        raise _invalid("header_repeated", "A header field is given more than once.")
    return fields


def _parameters(fields: Mapping[str, str]) -> _Parameters:
    """What the signature says about itself, before it is believed."""
    members = _dictionary(fields.get("signature-input", ""))
    if len(members) > 1:
        raise _invalid("several_signatures", "A signed request carries exactly one signature.")
    for member in members.values():
        if isinstance(member, tuple) and isinstance(member[0], list):
            parameters = member[1]
            break
    else:
        raise _invalid("header_malformed", "Signature-Input is not a signature's input.")
    created, expires = parameters.get("created"), parameters.get("expires")
    key_id, nonce = parameters.get("keyid"), parameters.get("nonce")
    if type(created) is not int or type(expires) is not int:
        raise _invalid("time_missing", "The parameters created and expires are required.")
    if type(key_id) is not str or type(nonce) is not str or not _NONCE.fullmatch(nonce):
        raise _invalid(
            "parameter_missing", "keyid, and a nonce of 16 to 128 base64 characters, are required."
        )
    if parameters.get("tag") != TAG:
        raise _invalid("tag_wrong", f"The tag must be {TAG}.")
    return _Parameters(created, expires, key_id, nonce)


def _dictionary(value: str) -> Mapping[str, object]:
    def refuse(_: str, __: str) -> None:
        raise ValueError("repeated")

    try:
        if len(value) > MAX_HEADER_CHARS:
            raise ValueError("too long")
        parsed = http_sf.parse(value.encode("ascii"), tltype="dictionary", on_duplicate_key=refuse)
        if not isinstance(parsed, dict):
            raise ValueError("not a dictionary")
    except ValueError:
        raise _invalid("header_malformed", "Signature-Input is malformed.") from None
    return parsed


def _verified_base(method: str, target_uris: Sequence[str], fields: dict[str, str], key: KeyRecord) -> bytes:
    """The signature base under the first target URI for which the signature holds."""
    verifier = _Verifier(
        signature_algorithm=ALGORITHMS[key.algorithm],
        key_resolver=MappingKeyResolver(public_keys={key.key_id: key.public_key.encode()}, private_keys={}),
    )
    if len(fields.get("signature", "")) > MAX_HEADER_CHARS:
        raise _invalid("header_malformed", "Signature is malformed.")
    for uri in target_uris:
        try:
            (result,) = verifier.verify(_Request(method, uri, fields), max_age=None, expect_tag=TAG)
        except HTTPMessageSignaturesException:
            continue
        if "?" in uri or not {f'"{name}"' for name in COMPONENTS} <= result.covered_components.keys():
            raise _invalid("component_missing", "Sign " + ", ".join(COMPONENTS) + "; no query string.")
        return "\n".join(f"{name}: {value}" for name, value in result.covered_components.items()).encode()
    raise _invalid("not_verified", "The signature does not hold for this request and this key.")


def _check_times(parameters: _Parameters, now: int) -> None:
    lifetime = parameters.expires - parameters.created
    if not 0 < lifetime <= MAX_LIFETIME_S:
        raise _invalid("lifetime_wrong", f"expires must follow created by at most {MAX_LIFETIME_S} seconds.")
    if not parameters.created - CLOCK_SKEW_S <= now < parameters.expires:
        raise _invalid("out_of_time", "The signature is not valid now.", "signature_expired")
