"""Recall and precision of the secret detector on a generated corpus.

Keys are made at run time from each provider's published format, in the carriers people use (a sentence, an
environment file, JSON, YAML, code, a log line). Innocent look-alikes are made the same way. Nothing here is a
credential: every key is random, from a fixed seed.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import json
import random
import string
import uuid
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

from remembrancer.domain.secrets import find_secrets

ALNUM = string.ascii_letters + string.digits
UPPER = string.ascii_uppercase + string.digits
LOWER = string.ascii_lowercase + string.digits
HEX = "0123456789abcdef"
URL = ALNUM + "-_"
B64 = ALNUM + "+/"


class Sample(NamedTuple):
    kind: str
    text: str
    secret: str
    """Empty for an innocent text."""


Make = Callable[[random.Random], str]


def _run(alphabet: str, length: int, *, prefix: str = "", suffix: str = "") -> Make:
    return lambda rng: prefix + "".join(rng.choices(alphabet, k=length)) + suffix


def _dotted(*parts: Make) -> Make:
    return lambda rng: ".".join(part(rng) for part in parts)


def _b64url(payload: dict[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(payload).encode()).rstrip(b"=").decode()


def _jwt(rng: random.Random) -> str:
    claims = {"sub": _run(LOWER, 8)(rng), "iat": rng.randrange(10**9, 2 * 10**9)}
    return ".".join((_b64url({"alg": "HS256", "typ": "JWT"}), _b64url(claims), _run(URL, 43)(rng)))


def _pem(label: str, lines: int) -> Make:
    def make(rng: random.Random) -> str:
        body = "\n".join(_run(B64, 64)(rng) for _ in range(lines)) + "\n" + _run(B64, 30, suffix="==")(rng)
        return f"-----{'BEGIN'} {label}-----\n{body}\n-----{'END'} {label}-----"

    return make


def _password(rng: random.Random) -> str:
    word = rng.choice(("Sommer", "hunter", "Dragon", "blau", "Tr0ub", "kanoo", "Winter"))
    return word + str(rng.randrange(10, 9999)) + rng.choice(("!", "#", "_x", "$Q", "z"))


PROVIDERS: dict[str, Make] = {
    "aws_access_key": _run(UPPER, 16, prefix="AK" + "IA"),
    "aws_temporary_access_key": _run(UPPER, 16, prefix="AS" + "IA"),
    "gcp_api_key": _run(URL, 35, prefix="AI" + "za"),
    "gcp_oauth_token": _run(URL, 60, prefix="ya29" + ".a0"),
    "gcp_oauth_secret": _run(URL, 28, prefix="GOC" + "SPX-"),
    "azure_client_secret": lambda rng: _run(ALNUM, 3)(rng) + "8Q" + "~" + _run(URL, 34)(rng),
    "github_classic": _run(ALNUM, 36, prefix="gh" + "p_"),
    "github_app": _run(ALNUM, 36, prefix="gh" + "s_"),
    "github_oauth": _run(ALNUM, 36, prefix="gh" + "o_"),
    "github_fine_grained": lambda rng: "github" + "_pat_" + _run(ALNUM, 22)(rng) + "_" + _run(ALNUM, 59)(rng),
    "gitlab_personal": _run(URL, 20, prefix="gl" + "pat-"),
    "gitlab_runner": _run(URL, 20, prefix="gl" + "rt-"),
    "gitlab_deploy": _run(URL, 20, prefix="gl" + "dt-"),
    "slack_bot": lambda rng: "xo" + "xb-" + "-".join((_run("123456789", 12)(rng), _run("123456789", 13)(rng),
                                                     _run(ALNUM, 24)(rng))),
    "slack_user": lambda rng: "xo" + "xp-" + "-".join((_run("123456789", 12)(rng), _run("123456789", 12)(rng),
                                                      _run("123456789", 13)(rng), _run(HEX, 32)(rng))),
    "slack_app": lambda rng: "xa" + "pp-1-A" + _run(UPPER, 10)(rng) + "-" + _run("123456789", 13)(rng) + "-"
    + _run(HEX, 64)(rng),
    "stripe_live": _run(ALNUM, 24, prefix="sk" + "_live_"),
    "stripe_live_long": _run(ALNUM, 99, prefix="sk" + "_live_51"),
    "stripe_restricted": _run(ALNUM, 24, prefix="rk" + "_live_"),
    "stripe_webhook": _run(ALNUM, 32, prefix="wh" + "sec_"),
    "twilio_api_key": _run(HEX, 32, prefix="S" + "K"),
    "sendgrid": lambda rng: "S" + "G." + _run(URL, 22)(rng) + "." + _run(URL, 43)(rng),
    "mailgun": _run(HEX, 32, prefix="ke" + "y-"),
    "mailgun_private": lambda rng: "-".join((_run(HEX, 32)(rng), _run(HEX, 8)(rng), _run(HEX, 8)(rng))),
    "mailchimp": lambda rng: _run(HEX, 32)(rng) + "-us" + str(rng.randrange(1, 22)),
    "npm": _run(ALNUM, 36, prefix="np" + "m_"),
    "pypi": _run(URL, 150, prefix="py" + "pi-AgEIcHlwaS5vcmc"),
    "docker_hub": _run(URL, 27, prefix="dck" + "r_pat_"),
    "hugging_face": _run(string.ascii_letters, 34, prefix="h" + "f_"),
    "openai_legacy": lambda rng: "s" + "k-" + _run(ALNUM, 20)(rng) + "T3Blbk" + "FJ" + _run(ALNUM, 20)(rng),
    "openai_project": lambda rng: "s" + "k-proj-" + _run(URL, 74)(rng) + "T3Blbk" + "FJ" + _run(URL, 74)(rng),
    "anthropic": _run(URL, 93, prefix="sk" + "-ant-api03-", suffix="AA"),
    "openrouter": _run(HEX, 64, prefix="sk" + "-or-v1-"),
    "groq": _run(ALNUM, 52, prefix="gs" + "k_"),
    "databricks": _run(HEX, 32, prefix="da" + "pi"),
    "digitalocean": _run(HEX, 64, prefix="do" + "p_v1_"),
    "shopify": _run(HEX, 32, prefix="shp" + "at_"),
    "square_access": _run(URL, 22, prefix="sq0" + "atp-"),
    "square_secret": _run(URL, 43, prefix="sq0" + "csp-"),
    "telegram_bot": lambda rng: str(rng.randrange(10**9, 10**10 - 1)) + ":A" + "A" + _run(URL, 33)(rng),
    "discord_bot": lambda rng: "M" + "T" + _run(ALNUM, 22)(rng) + "." + _run(ALNUM, 6)(rng) + "."
    + _run(URL, 38)(rng),
    "jwt": _jwt,
    "vault": _run(URL, 90, prefix="hv" + "s.CAES"),
    "terraform_cloud": lambda rng: _run(ALNUM, 14)(rng) + ".atlas" + "v1." + _run(ALNUM, 67)(rng),
    "atlassian": _run(URL, 180, prefix="ATA" + "TT3xFfGF0", suffix="=" + "1A2B3C4D"),
    "linear": _run(ALNUM, 40, prefix="lin" + "_api_"),
    "notion": _run(ALNUM, 46, prefix="nt" + "n_"),
    "notion_legacy": _run(ALNUM, 43, prefix="sec" + "ret_"),
    "figma": _run(URL, 40, prefix="fig" + "d_"),
    "airtable": lambda rng: "pa" + "t" + _run(ALNUM, 14)(rng) + "." + _run(HEX, 64)(rng),
    "postman": lambda rng: "PM" + "AK-" + _run(HEX, 24)(rng) + "-" + _run(HEX, 34)(rng),
    "new_relic": _run(UPPER, 27, prefix="NR" + "AK-"),
    "grafana": lambda rng: "gl" + "sa_" + _run(ALNUM, 32)(rng) + "_" + _run(HEX, 8)(rng),
    "sentry": _run(HEX, 64, prefix="snt" + "ryu_"),
    "age": _run("023456789ACDEFGHJKLMNPQRSTUVWXYZ", 58, prefix="AGE-SEC" + "RET-KEY-1"),
    "rsa_key": _pem("RSA PRIVATE " + "KEY", 20),
    "pkcs8_key": _pem("PRIVATE " + "KEY", 24),
    "ec_key": _pem("EC PRIVATE " + "KEY", 3),
    "openssh_key": _pem("OPENSSH PRIVATE " + "KEY", 6),
    "encrypted_key": _pem("ENCRYPTED PRIVATE " + "KEY", 26),
}  # fmt: skip
"""Keys that their format alone gives away."""

CARRIERS: tuple[str, ...] = (
    "{}",
    "The value we use for the staging server is {} and it must be rotated in May.",
    "export SERVICE={}\nexport LEVEL=debug",
    '{{"service": "{}", "retries": 3}}',
    "service:\n  auth: {}\n  retries: 3",
    'client = Client("{}")  # works on my machine',
    "Example from the manual: `{}`.",
    "2026-05-04 12:00:01 ERROR cannot log in with {}, giving up",
)

NAMED: dict[str, tuple[Make, tuple[str, ...]]] = {
    "aws_secret_key": (_run(B64, 40), ("aws_secret_access_key = {}", 'AWS_SECRET_ACCESS_KEY="{}"',
                                       '"SecretAccessKey": "{}"', "the aws secret key is {}")),
    "aws_session_token": (_run(B64, 320), ("aws_session_token={}", '"SessionToken": "{}"')),
    "azure_storage": (_run(B64, 86, suffix="=="),
                      ("AccountName=x;AccountKey={};EndpointSuffix=core.windows.net",)),
    "azure_sas": (_run(ALNUM, 43, suffix="%3D"),
                  ("https://x.blob.core.windows.net/c?sv=2022-11-02&se=2026&sig={}",)),
    "gcp_service_account": (_run(HEX, 40), ('{{"type": "service_account", "private_key_id": "{}"}}',)),
    "wireguard": (_run(B64, 43, suffix="="), ("[Interface]\nPrivateKey = {}\nAddress = 10.0.0.2/32",)),
    "slack_webhook": (lambda rng: f"T{_run(UPPER, 9)(rng)}/B{_run(UPPER, 9)(rng)}/{_run(ALNUM, 24)(rng)}",
                      ("post to https://hooks.slack" + ".com/services/{}",)),
    "discord_webhook": (_run(URL, 68), ("https://discord.com/api/webhooks/123456789012345678/{}",)),
    "twilio_auth_token": (_run(HEX, 32), ("TWILIO_AUTH_TOKEN={}", "twilio auth token: {}")),
    "datadog": (_run(HEX, 32), ("DD_API_KEY={}", "datadog api key {}")),
    "npmrc": (lambda rng: str(uuid.UUID(int=rng.getrandbits(128))),
              ("//registry.example.com/:_authToken={}",)),
    "sentry_dsn": (_run(HEX, 32), ("https://{}@o123.ingest.sentry.io/456",)),
    "postgres": (_password, ("postgresql://app:{}@db.internal:5432/main",
                             "DATABASE_URL=postgres://u:{}@h/d")),
    "mysql": (_password, ("mysql+pymysql://root:{}@127.0.0.1/shop",)),
    "mongodb": (_password, ("mongodb+srv://admin:{}@cluster0.example.net/?retryWrites=true",)),
    "redis": (_password, ("redis://:{}@cache:6379/0", "rediss://default:{}@cache.example.com:6380")),
    "amqp": (_password, ("amqp://guest:{}@mq:5672/vhost",)),
    "basic_auth_url": (_password, ("curl https://bob:{}@example.com/report.csv",)),
    "ado_net": (_password, ("Server=db;Database=shop;User Id=sa;Password={};Encrypt=true",)),
    "bearer": (_run(ALNUM, 40), ("curl -H 'Authorization: Bearer {}' https://api.example.com",)),
    "password_assignment": (_password, ("password = {}", 'password="{}"', "DB_PASSWORD={}", "password: {}",
                                        '"password": "{}"', "passwd={}", "SMTP_PASS={}", "--password {}",
                                        "<password>{}</password>", "pwd: '{}'", "passphrase: {}")),
    "password_in_prose": (_password, ("My password is {}.", "the wifi password for the flat is {}",
                                      "The password was changed to {} yesterday.",
                                      "password: {}, please keep it")),
    "api_key_assignment": (_run(ALNUM, 32), ("api_key = {}", 'apiKey: "{}"', "X_API_KEY={}",
                                             '"client_secret": "{}"',
                                             "access_token={}", "secret_key = '{}'", "auth_token: {}",
                                             "--api-key {}", "https://x.example/v1?api_key={}&q=1")),
    "api_key_in_prose": (_run(ALNUM, 32), ("the api key is {}", "our token for the CRM is {}.")),
}  # fmt: skip
"""Keys that only their name or place gives away, with the texts that name them."""


def innocents(rng: random.Random) -> list[str]:
    """Texts without a secret that look as if they had one."""
    digest = hashlib.sha256(rng.randbytes(8)).hexdigest()
    image = base64.b64encode(rng.randbytes(300)).decode()
    ident = uuid.UUID(int=rng.getrandbits(128), version=4)
    word = rng.choice(("invoice", "parcel", "garden", "compiler"))
    code = _run(UPPER, 4)(rng) + "-" + _run(UPPER, 4)(rng) + "-" + _run(string.digits, 4)(rng)
    return [
        f"The request {ident} failed twice, see also {uuid.UUID(int=rng.getrandbits(128))}.",
        f"Fixed in commit {digest[:40]} ({digest[:7]}) on main.",
        f"sha256:{digest} is the digest of the image, md5 {digest[:32]}.",
        f"![logo](data:image/png;base64,{image})",
        f"background: url(data:image/svg+xml;base64,{image[:200]});",
        f"arn:aws:iam::{rng.randrange(10**11, 10**12)}:role/service-role/{word}-writer-{digest[:8]}",
        f"https://example.com/{word}/2026/05/{digest[:12]}?page=2&sort=price&session={ident}",
        f"/usr/local/lib/python3.13/site-packages/{word}/__pycache__/{word}.cpython-313.pyc",
        f"C:\\Users\\sam\\AppData\\Local\\{word}\\{digest[:16]}.tmp",
        f"Product code {code}, serial {_run(UPPER, 12)(rng)}, batch {rng.randrange(10**6)}.",
        f"ULID 01{_run('0123456789ABCDEFGHJKMNPQRSTVWXYZ', 24)(rng)} belongs to the {word}.",
        "She forgot her password and asked for a reset; the secret of a good soup is time.",
        "Password: must be at least 12 characters with a digit.",
        "The token is valid for 3600 seconds, then the client asks for a new one.",
        "max_tokens: 4096, token_count = 128000, tokens=250000",
        "password = getpass.getpass() and token = os.environ['TOKEN']",
        "secret: ${{ secrets.DEPLOY_KEY }} and api_key: <your api key here>",
        'password = "${DB_PASSWORD}"; api_key = "{{ vault_api_key }}"',
        f"next_page_token: {_run(URL, 24)(rng)}",
        "The secret is stored in arn:aws:secretsmanager:eu-west-1:123456789012:secret:prod/db-AbCdEf",
        "def check(password: str, token: Optional[str]) -> bool: ...",
        f'"integrity": "sha512-{base64.b64encode(rng.randbytes(64)).decode()}"',
        f"ssh-ed25519 {base64.b64encode(rng.randbytes(51)).decode()} sam@laptop",
        f"-----BEGIN PUBLIC KEY-----\n{image[:64]}\n-----END PUBLIC KEY-----",
        f"-----BEGIN CERTIFICATE-----\n{image[:64]}\n-----END CERTIFICATE-----",
        "A PEM file starts with BEGIN PRIVATE KEY and ends with END PRIVATE KEY.",
        "risk-averse, task-oriented, desk-bound and sk-learn are words with sk- in them.",
        f"Order {rng.randrange(10**9, 10**10)}:{word} was shipped at 10:{rng.randrange(10, 59)}.",
        "The password policy asks for SHA256-hashed storage and 90-day rotation.",
        "secret santa: Tuesday 14:30, token of appreciation: a plant",
        f"trace id {digest[:32]}, span id {digest[32:48]}, etag \"{digest[:32]}\"",
        "https://user@example.com/repo.git and git@example.com:team/repo.git",
        "css-module_button__3fKx9 and chunk-vendors.8c1f2ab4.js were rebuilt",
        f"The boarding pass: gate B12, seat {rng.randrange(1, 40)}C, booking {_run(UPPER, 6)(rng)}.",
        "keyboard: qwertz, keyword: compiler, key: value, api_key_name: production",
        "resetPassword(userId), hashPassword(plain), validateToken(request.headers.authorization)",
    ]  # fmt: skip


def corpus(seed: int = 0, rounds: int = 3) -> list[Sample]:
    """Every kind in every carrier `rounds` times, and the look-alikes as often."""
    rng = random.Random(seed)
    samples: list[Sample] = []
    for _ in range(rounds):
        for kind, make in PROVIDERS.items():
            for carrier in CARRIERS:
                secret = make(rng)
                samples.append(Sample(kind, carrier.format(secret), secret))
        for kind, (make, texts) in NAMED.items():
            for text in texts:
                secret = make(rng)
                samples.append(Sample(kind, text.format(secret), secret))
        samples += [Sample("innocent", text, "") for _ in range(5) for text in innocents(rng)]
    return samples


def measure(seed: int = 0, rounds: int = 3) -> dict[str, Any]:
    """Recall: the whole secret lies inside one finding. Precision: findings that overlap a secret."""
    caught: Counter[str] = Counter()
    support: Counter[str] = Counter()
    right = wrong = 0
    misses: list[Sample] = []
    alarms: list[Sample] = []
    for sample in corpus(seed, rounds):
        start = sample.text.find(sample.secret) if sample.secret else -1
        end = start + len(sample.secret)
        findings = find_secrets(sample.text)
        overlapping = [f for f in findings if sample.secret and f.start < end and start < f.end]
        right += len(overlapping)
        wrong += len(findings) - len(overlapping)
        if len(findings) > len(overlapping):
            alarms.append(sample)
        if sample.secret:
            support[sample.kind] += 1
            if any(f.start <= start and end <= f.end for f in overlapping):
                caught[sample.kind] += 1
            else:
                misses.append(sample)
    return {
        "secrets_recall": round(caught.total() / support.total(), 4),
        "secrets_precision": round(right / (right + wrong), 4),
        "kinds": {kind: round(caught[kind] / support[kind], 4) for kind in support},
        "support": support.total(),
        "missed": misses,
        "false_alarms": alarms,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    scores = measure(arguments.seed, arguments.rounds)
    for kind, recall in sorted(scores["kinds"].items(), key=lambda item: (item[1], item[0])):
        print(f"{kind:28}{recall:8.3f}")
    for name in ("secrets_recall", "secrets_precision", "support"):
        print(f"{name:28}{scores[name]:8}")


if __name__ == "__main__":
    main()
