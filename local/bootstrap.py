"""`python -m local.bootstrap`: the first tenant of a deployed stack, its first people and signing key.

Uses the operator's AWS credentials: people are made in the user pool, and the deployed migrate function
registers tenant, principals and keys. Shows what it would do and does nothing until told `--apply`.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import load_pem_public_key

from functions import manifest

_EMAIL = re.compile(r"[^@\s]+@[^@\s]+\.[^@\s]+")
_NEEDED_OUTPUTS = ("UserPoolId", "Issuer", "MigrateFunction", "PageUrl", "ApiUrl")


class BootstrapFailed(Exception):
    """What is wrong, in words for the operator."""


@dataclass(frozen=True)
class Person:
    """Somebody to invite; the pool mails a temporary password and asks for a second factor."""

    email: str
    groups: tuple[str, ...]
    key: dict[str, str] | None = None


@dataclass(frozen=True)
class Plan:
    """What a run does. Agents' clients exist already (docs/operate.md): their ids are subjects."""

    tenant: str
    people: tuple[Person, ...]
    agents: tuple[tuple[str, str], ...] = field(default=())

    def lines(self) -> list[str]:
        """The plan in words."""
        return [
            f"create tenant {self.tenant!r}",
            *(
                f"invite {person.email} as {', '.join(person.groups)}"
                + (f" with a signing key ({person.key['algorithm']})" if person.key else "")
                for person in self.people
            ),
            *(f"register agent {name!r}, client {client}" for name, client in self.agents),
        ]


class Clients(Protocol):
    """boto3's session, as far as it is used."""

    def client(self, service: str, *, config: Any = None) -> Any: ...


def read_public_key(path: Path) -> dict[str, str]:
    """`{algorithm, public_key}` of a PEM file with an Ed25519 or P-256 public key. Raises BootstrapFailed."""
    try:
        pem = path.read_text(encoding="ascii")
        key = load_pem_public_key(pem.encode("ascii"))
    except OSError as error:
        raise BootstrapFailed(f"{path}: {error.strerror}") from None
    except (ValueError, UnsupportedAlgorithm):
        raise BootstrapFailed(f"{path} holds no public key in PEM") from None
    if isinstance(key, Ed25519PublicKey):
        return {"algorithm": "ed25519", "public_key": pem}
    if isinstance(key, EllipticCurvePublicKey) and isinstance(key.curve, SECP256R1):
        return {"algorithm": "ecdsa-p256-sha256", "public_key": pem}
    raise BootstrapFailed(f"{path}: only Ed25519 and P-256 keys sign")


def outputs_of(session: Clients, stack: str) -> dict[str, str]:
    """The stack's outputs. Raises BootstrapFailed when it is not a deployment of ours."""
    (described,) = session.client("cloudformation").describe_stacks(StackName=stack)["Stacks"]
    found = {output["OutputKey"]: output["OutputValue"] for output in described.get("Outputs", [])}
    missing = [name for name in _NEEDED_OUTPUTS if name not in found]
    if missing:
        raise BootstrapFailed(f"stack {stack} has no output {', '.join(missing)}")
    return found


def subject_of(session: Clients, pool: str, person: Person) -> str:
    """The person's subject in the pool, invited first when unknown, with exactly the groups added."""
    cognito = session.client("cognito-idp")
    email = [{"Name": "email", "Value": person.email}, {"Name": "email_verified", "Value": "true"}]
    try:
        user = cognito.admin_create_user(
            UserPoolId=pool, Username=person.email, UserAttributes=email, DesiredDeliveryMediums=["EMAIL"]
        )["User"]
        attributes, username = user["Attributes"], user["Username"]
    except cognito.exceptions.UsernameExistsException:
        known = cognito.admin_get_user(UserPoolId=pool, Username=person.email)
        attributes, username = known["UserAttributes"], known["Username"]
    for group in person.groups:
        cognito.admin_add_user_to_group(UserPoolId=pool, Username=username, GroupName=group)
    return next(str(attribute["Value"]) for attribute in attributes if attribute["Name"] == "sub")


def request_of(plan: Plan, issuer: str, subjects: Mapping[str, str]) -> dict[str, Any]:
    """The migrate function's event; `subjects` are the people's, by e-mail address."""
    people = [
        {
            "issuer": issuer,
            "subject": subjects[person.email],
            "kind": "human",
            "name": person.email,
            "capabilities": list(person.groups),
            "team_grant": "write",
            "keys": [person.key] if person.key else [],
        }
        for person in plan.people
    ]
    agents = [
        {"issuer": issuer, "subject": client, "kind": "agent", "name": name, "team_grant": "write"}
        for name, client in plan.agents
    ]
    return {"action": "bootstrap", "tenant": plan.tenant, "principals": people + agents}


def invoke(session: Clients, function: str, event: dict[str, Any]) -> dict[str, Any]:
    """The function's answer. Raises BootstrapFailed with the class and text of its error."""
    # A paused cluster takes its time, as do the erasures of a restored one, and a second try would find the credentials
    # registered: what the function did is heard out.
    patient = Config(
        read_timeout=manifest.function("migrate").timeout_s + 20, retries={"total_max_attempts": 1}
    )
    client = session.client("lambda", config=patient)
    answer = client.invoke(FunctionName=function, Payload=json.dumps(event).encode())
    payload: dict[str, Any] = json.loads(answer["Payload"].read())
    if "FunctionError" in answer:
        raise BootstrapFailed(
            f"{function} refused: {payload.get('errorType', 'error')}: {payload.get('errorMessage', '')}"
        )
    return payload


def run(plan: Plan, stack: str, session: Clients) -> dict[str, Any]:
    """Carries the plan out; safe to repeat until it succeeds. Raises BootstrapFailed."""
    outputs = outputs_of(session, stack)
    subjects = {p.email: subject_of(session, outputs["UserPoolId"], p) for p in plan.people}
    created = invoke(session, outputs["MigrateFunction"], request_of(plan, outputs["Issuer"], subjects))
    return {**created, "page": outputs["PageUrl"], "api": outputs["ApiUrl"]}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="bootstrap", description="First tenant, admin and signing key of a deployed stack."
    )
    parser.add_argument("--stack", default="remembrancer-dev", help="name of the stack")
    parser.add_argument("--tenant", required=True, help="name of the tenant")
    parser.add_argument("--admin", required=True, metavar="EMAIL", help="the first administrator")
    parser.add_argument(
        "--key", required=True, type=Path, metavar="PEM", help="the administrator's public key"
    )
    parser.add_argument(
        "--person",
        action="append",
        default=[],
        metavar="EMAIL=GROUP[,GROUP]",
        help="somebody else to invite; repeatable",
    )
    parser.add_argument(
        "--agent", action="append", default=[], metavar="NAME=CLIENT_ID", help="an agent; repeatable"
    )
    parser.add_argument("--apply", action="store_true", help="do it; without, only say what would be done")
    return parser


def plan_of(arguments: Sequence[str]) -> tuple[Plan, str, bool]:
    """Plan, stack and whether to apply. Raises BootstrapFailed."""
    options = _parser().parse_args(arguments)
    people = [Person(options.admin, ("admin",), read_public_key(options.key))]
    for entry in options.person:
        email, _, groups = entry.partition("=")
        people.append(Person(email, tuple(groups.split(","))))
    agents = []
    for entry in options.agent:
        name, equals, client = entry.rpartition("=")
        if not (name and equals and client):
            raise BootstrapFailed(f"--agent {entry!r}: write NAME=CLIENT_ID")
        agents.append((name, client))
    for person in people:
        if not _EMAIL.fullmatch(person.email):
            raise BootstrapFailed(f"{person.email!r} is no e-mail address")
        unknown = [group for group in person.groups if group not in manifest.HUMAN_GROUPS]
        if unknown:
            raise BootstrapFailed(f"{person.email}: no such group: {', '.join(unknown)}")
    if len({person.email for person in people}) < len(people):
        raise BootstrapFailed("an address is named twice")
    return Plan(options.tenant, tuple(people), tuple(agents)), options.stack, options.apply


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code."""
    try:
        plan, stack, apply = plan_of(sys.argv[1:] if arguments is None else arguments)
        print(f"stack {stack}:")
        print("\n".join(f"  {line}" for line in plan.lines()))
        if not apply:
            print("nothing was done; add --apply")
            return 0
        print(json.dumps(run(plan, stack, boto3.Session()), indent=2))
    except BootstrapFailed as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except (BotoCoreError, ClientError) as error:
        print(f"error: AWS: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
