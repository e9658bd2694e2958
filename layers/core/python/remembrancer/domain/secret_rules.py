"""The shapes of provider credentials, as data. Searched in the view of `flat`, with google-re2.

A rule's pattern runs only when one of its hints occurs in the lower-cased text. Group 1, where there is one,
is the secret; else the whole match is. `mixed` asks for upper case, lower case and digits in it, `entropy`
for that many bits a character (Shannon): both keep words, paths and repeated characters out.
"""

from __future__ import annotations

from typing import NamedTuple


class Rule(NamedTuple):
    kind: str
    hints: tuple[bytes, ...]
    pattern: bytes
    entropy: float = 2.0
    mixed: bool = False


_SEPARATOR = rb"(?:\\{1,4}[nr]|[\s>\"'+,|])"
PRIVATE_KEY = (
    rb"-{0,5}BEGIN (?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)?-{0,5}"
    rb"(?:" + _SEPARATOR + rb"*[A-Za-z-]{3,20}: [^\n\\]*){0,6}"
    rb"(?:" + _SEPARATOR + rb"*[A-Za-z0-9+/=]{16,})+"
    rb"(?:" + _SEPARATOR + rb"*[A-Za-z0-9+/=]{0,64}" + _SEPARATOR + rb"*"
    rb"-{0,5}END (?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)?-{0,5})?"
)

_LONG_RULES: tuple[Rule, ...] = (
    Rule("private_key", (b"private key",), PRIVATE_KEY, 0.0),
    Rule("putty_key", (b"private-lines",), rb"Private-Lines: \d{1,3}((?:\s{1,4}[A-Za-z0-9+/=]{16,64})+)"),
    Rule("age_key", (b"age-secret-key-1",), rb"AGE-SECRET-KEY-1[0-9A-Za-z]{50,64}"),
    Rule("wireguard_key", (b"privatekey", b"presharedkey"),
         rb"(?i)\b(?:private|preshared)key[\"']?\s{0,4}[=:]\s{0,4}[\"']?([A-Za-z0-9+/]{43}=)"),
    # Clouds
    Rule("aws_access_key", (b"akia", b"asia", b"abia", b"acca", b"a3t"),
         rb"\b(?:A3T[A-Z0-9]|ABIA|ACCA|AKIA|ASIA)[A-Z0-9]{16}\b"),
    Rule("aws_secret_key", (b"aws", b"secret"),
         rb"(?i)(?:aws.{0,30}?(?:key|secret|pw|pass|token)|secret.?access.?key).{0,24}?[^A-Za-z0-9/+.-]"
         rb"([A-Za-z0-9/+]{40})(?:[^A-Za-z0-9/+=-]|$)", 3.5, True),
    Rule("aws_session_token", (b"session",),
         rb"(?i)session.?token[\"']?\s{0,4}[=:>]\s{0,4}[\"']?([A-Za-z0-9/+]{64,}={0,2})", 3.5),
    Rule("aws_mws_key", (b"amzn.mws.",), rb"\bamzn\.mws\.[0-9a-f-]{36}"),
    Rule("aws_bedrock_key", (b"absk",), rb"\bABSK[A-Za-z0-9+/]{100,}={0,2}", 3.5),
    Rule("gcp_api_key", (b"aiza",), rb"\bAIza[0-9A-Za-z_-]{35}"),
    Rule("gcp_oauth_token", (b"ya29.",), rb"\bya29\.[0-9A-Za-z_-]{20,}"),
    Rule("gcp_oauth_secret", (b"gocspx-",), rb"\bGOCSPX-[\w-]{24,}"),
    Rule("gcp_service_account", (b"private_key_id",),
         rb"private_key_id\\{0,2}[\"']\s{0,8}:\s{0,8}\\{0,2}[\"']([0-9a-f]{40})"),
    Rule("azure_storage_key", (b"accountkey",), rb"(?i)AccountKey\s{0,2}=\s{0,2}([A-Za-z0-9+/]{86}==)"),
    Rule("azure_shared_access_key", (b"sharedaccesskey",),
         rb"(?i)SharedAccessKey\s{0,2}=\s{0,2}([A-Za-z0-9+/]{43}=)"),
    Rule("azure_sas", (b"sig=",), rb"(?i)[?&;]sig=([A-Za-z0-9%+/_-]{40,}=?)", 3.0),
    Rule("azure_client_secret", (b"q~",), rb"(?:^|[^A-Za-z0-9_~.-])([\w~.-]{3}\dQ~[\w~.-]{31,34})"),
    Rule("alibaba_key", (b"ltai",), rb"\bLTAI[A-Za-z0-9]{12,24}\b", 3.0, True),
    Rule("digitalocean_token", (b"_v1_",), rb"\bdo[opr]_v1_[0-9a-f]{64}\b"),
    Rule("heroku_key", (b"hrku-",), rb"\bHRKU-[\w-]{30,}"),
    Rule("flyio_token", (b"fo1_", b"fm2_", b"fm1r_"),
         rb"\b(?:fo1_[\w-]{40,}|fm(?:1r|2)_[A-Za-z0-9+/=]{50,})"),
    Rule("planetscale_token", (b"pscale_",), rb"\bpscale_(?:tkn|pw|oauth)_[\w=.-]{32,}"),
    Rule("supabase_key", (b"sbp_", b"sb_secret_"), rb"\b(?:sbp_[0-9a-f]{40}|sb_secret_[\w-]{20,})"),
    Rule("netlify_token", (b"nfp_",), rb"\bnfp_[A-Za-z0-9]{36,}"),
    Rule("ibm_cos_hmac", (b"cos", b"hmac"),
         rb"(?i)(?:cos|hmac)[a-z_. -]{0,40}secret[a-z_. -]{0,20}[\"']?"
         rb"\s{0,4}[=:]+\s{0,4}[\"']?([0-9a-f]{48})\b"),
    # Code hosting, packages, infrastructure
    Rule("github_token", (b"ghp_", b"gho_", b"ghu_", b"ghs_", b"ghr_"), rb"\bgh[pousr]_[\w]{36,255}"),
    Rule("github_fine_grained_token", (b"github_pat_",), rb"\bgithub_pat_[\w]{22,255}"),
    Rule("gitlab_token", (b"gl", b"gr1348941"),
         rb"\b(?:gl(?:pat|dt|ft|soat|rt|rtr|cbt|imt|ptt|agent|oas|ffct)-[\w.=-]{20,1000}"
         rb"|GR1348941[\w-]{20,50})"),
    Rule("bitbucket_token", (b"atbb",), rb"\bATBB[\w=-]{24,}", 3.0),
    Rule("atlassian_token", (b"atatt3", b"atctt3"), rb"\bAT[AC]TT3[\w=-]{40,}"),
    Rule("npm_token", (b"npm_", b"_authtoken"),
         rb"(?:\bnpm_[A-Za-z0-9]{36,}|_authToken\s{0,4}=\s{0,4}[\"']?[\w.+/=-]{20,})"),
    Rule("pypi_token", (b"pypi-age",), rb"\bpypi-AgE[\w-]{50,}"),
    Rule("rubygems_key", (b"rubygems_",), rb"\brubygems_[0-9a-f]{48}\b"),
    Rule("crates_token", (b"cio",), rb"\bcio[A-Za-z0-9]{32}\b", 3.5, True),
    Rule("nuget_key", (b"oy2",), rb"\boy2[a-z0-9]{43}\b", 3.0),
    Rule("docker_hub_token", (b"dckr_",), rb"\bdckr_(?:pat|oat)_[\w-]{20,}"),
    Rule("docker_auth", (b"auth",), rb"\"auth\"\s{0,8}:\s{0,8}\"([A-Za-z0-9+/]{16,}={0,2})\"", 3.0),
    Rule("artifactory_key", (b"akc",), rb"\bAKC[A-Za-z0-9]{60,}\b", 3.0, True),
    Rule("vault_token", (b"hvs.", b"hvb.", b"hvr."), rb"\bhv[sbr]\.[\w-]{20,}"),
    Rule("vault_legacy_token", (b"s.", b"b.", b"r."), rb"\b[sbr]\.[A-Za-z0-9]{24}\b", 3.5, True),
    Rule("terraform_token", (b".atlasv1.",), rb"\b[A-Za-z0-9]{14}\.atlasv1\.[\w-]{40,}"),
    Rule("pulumi_token", (b"pul-",), rb"\bpul-[0-9a-f]{40}\b"),
    Rule("doppler_token", (b"dp.",), rb"\bdp\.(?:pt|st|ct|sa|scim|audit)\.[A-Za-z0-9._-]{40,}"),
    Rule("circleci_token", (b"ccipat_",), rb"\bCCIPAT_[A-Za-z0-9]{22}_[0-9a-f]{40}\b"),
    Rule("buildkite_token", (b"bkua_",), rb"\bbkua_[0-9a-f]{40}\b"),
    Rule("sonar_token", (b"squ_", b"sqp_", b"sqa_"), rb"\bsq[upa]_[0-9a-f]{40}\b"),
    Rule("tailscale_key", (b"tskey-",), rb"\btskey-[a-z]{2,12}-[A-Za-z0-9-]{16,}"),
    Rule("onepassword_token", (b"ops_eyj",), rb"\bops_eyJ[\w=-]{60,}"),
    # Models
    Rule("anthropic_key", (b"sk-ant-",), rb"\bsk-ant-[a-z]{2,10}\d{0,2}-[\w-]{20,}"),
    Rule("openrouter_key", (b"sk-or-",), rb"\bsk-or-(?:v1-)?[0-9a-f]{40,}"),
    Rule("openai_key", (b"sk-",),
         rb"\b(?:sk-(?:proj|svcacct|admin|None)-[\w-]{20,}|sk-[\w-]{0,200}T3BlbkFJ[\w-]{20,}"
         rb"|sk-[A-Za-z0-9]{32,})", 3.0),
    Rule("huggingface_token", (b"hf_", b"api_org_"), rb"\b(?:hf|api_org)_[A-Za-z0-9]{30,}\b", 3.0),
    Rule("groq_key", (b"gsk_",), rb"\bgsk_[A-Za-z0-9]{40,}"),
    Rule("xai_key", (b"xai-",), rb"\bxai-[A-Za-z0-9]{60,}"),
    Rule("replicate_token", (b"r8_",), rb"\br8_[A-Za-z0-9]{37,}\b"),
    Rule("perplexity_key", (b"pplx-",), rb"\bpplx-[A-Za-z0-9]{40,}"),
    Rule("pinecone_key", (b"pcsk_",), rb"\bpcsk_[\w]{40,}"),
    Rule("langsmith_key", (b"lsv2_",), rb"\blsv2_(?:pt|sk)_[0-9a-f]{32}_[0-9a-f]{10}\b"),
    Rule("databricks_token", (b"dapi",), rb"\bdapi[0-9a-f]{32}(?:-\d)?\b", 2.5),
    # Messages and mail
    Rule("slack_token", (b"xox", b"xapp-"),
         rb"(?i)\b(?:xox[abceoprs]-(?:\d{1,3}-)?[a-z0-9-]{10,}|xapp-\d-[a-z0-9-]{20,})", 2.0),
    Rule("slack_webhook", (b"hooks.slack.com",),
         rb"(?i)hooks\.slack\.com/(?:services|workflows|triggers)/([A-Za-z0-9+/_-]{20,})"),
    Rule("teams_webhook", (b"webhook.office.com",), rb"webhook\.office\.com/webhookb2/([A-Za-z0-9@/-]{60,})"),
    Rule("discord_webhook", (b"api/webhooks/",),
         rb"(?i)discord(?:app)?\.com/api/webhooks/\d{15,20}/([\w-]{50,})"),
    Rule("discord_bot_token", (b".",), rb"\b[MNO][\w-]{22,27}\.[\w-]{6}\.[\w-]{27,40}", 3.5, True),
    Rule("telegram_bot_token", (b":",), rb"(?:\b|bot)(\d{8,10}:[\w-]{35})(?:[^\w-]|$)", 3.5),
    Rule("twilio_key", (b"ac", b"sk"), rb"\b(?:AC|SK)[0-9a-f]{32}\b", 3.0),
    Rule("twilio_auth_token", (b"twilio",), rb"(?i)twilio[^\n]{0,40}?\b([0-9a-f]{32})\b", 3.0),
    Rule("sendgrid_key", (b"sg.",), rb"\bSG\.[\w-]{16,32}\.[\w-]{16,64}", 3.5),
    Rule("mailgun_key", (b"key-",), rb"\bkey-[0-9a-f]{32}\b", 3.0),
    Rule("mailgun_private_key", (b"-",), rb"\b[0-9a-f]{32}-[0-9a-f]{8}-[0-9a-f]{8}\b", 3.0),
    Rule("mailchimp_key", (b"-us",), rb"\b[0-9a-z]{32}-us\d{1,2}\b", 3.0),
    Rule("mandrill_key", (b"md-",), rb"\bmd-[\w-]{22}\b", 3.5, True),
    Rule("brevo_key", (b"xkeysib-",), rb"\bxkeysib-[0-9a-f]{64}-[A-Za-z0-9]{16}\b"),
    # Payments and commerce
    Rule("stripe_key", (b"k_live_", b"k_test_", b"k_prod_"), rb"\b[rs]k_(?:live|test|prod)_[A-Za-z0-9]{10,}"),
    Rule("stripe_webhook_secret", (b"whsec_",), rb"\bwhsec_[A-Za-z0-9+/=]{24,}"),
    Rule("square_token", (b"sq0", b"eaaa"),
         rb"\b(?:sq0(?:atp|csp|idp)-[\w\\-]{22,43}|EAAA[\w-]{56,64}\b)", 3.0),
    Rule("shopify_token", (b"shpat_", b"shpca_", b"shppa_", b"shpss_", b"shpua_", b"shptka_"),
         rb"\bshp(?:at|ca|pa|ss|ua|tka)_[0-9a-fA-F]{32}\b"),
    Rule("paypal_token", (b"access_token$",),
         rb"access_token\$(?:production|sandbox)\$[0-9a-z]{16}\$[0-9a-f]{32}"),
    Rule("easypost_key", (b"ezak", b"eztk"), rb"\bEZ[AT]K[A-Za-z0-9]{54}\b"),
    Rule("facebook_token", (b"eaacedeose0cba",), rb"\bEAACEdEose0cBA[A-Za-z0-9]{10,}"),
    Rule("twitter_bearer", (b"aaaaaaaaaaaaaaaaaaaaa",), rb"\bA{21}[A-Za-z0-9%]{50,}", 2.5),
    # Work tools
    Rule("linear_key", (b"lin_",), rb"\blin_(?:api|oauth)_[A-Za-z0-9]{32,}"),
    Rule("notion_token", (b"secret_", b"ntn_"), rb"\b(?:secret_[A-Za-z0-9]{43}\b|ntn_[A-Za-z0-9]{40,})", 3.0),
    Rule("figma_token", (b"fig",), rb"\bfig[dour]_[\w-]{36,}", 3.0),
    Rule("airtable_token", (b"pat",), rb"\bpat[A-Za-z0-9]{14}\.[0-9a-f]{64}\b"),
    Rule("airtable_key", (b"airtable",), rb"(?i)airtable[^\n]{0,40}?\b(key[A-Za-z0-9]{14})\b", 3.0),
    Rule("postman_key", (b"pmak-",), rb"\bPMAK-[0-9a-f]{24}-[0-9a-f]{34}\b"),
    Rule("typeform_token", (b"tfp_",), rb"\btfp_[\w.=-]{40,}"),
    Rule("asana_token", (b"asana",), rb"(?i)asana[^\n]{0,40}?\b(\d/\d{10,20}:[0-9a-f]{32})\b"),
    # Telemetry
    Rule("new_relic_key", (b"nrak-", b"nrii-", b"nrjs-", b"nrra-", b"nral"),
         rb"\b(?:NR(?:AK|II|RA)-[\w-]{27,42}|NRJS-[0-9a-f]{19}\b|[0-9a-f]{36}NRAL\b)"),
    Rule("datadog_key", (b"datadog", b"dd_", b"dd-"),
         rb"(?i)(?:datadog|\bdd[_-](?:api|app|client))[^\n]{0,40}?\b([0-9a-f]{32}(?:[0-9a-f]{8})?)\b", 3.0),
    Rule("grafana_token", (b"glsa_", b"glc_", b"eyjrijoi"),
         rb"\b(?:glsa_[A-Za-z0-9]{32}_[0-9a-fA-F]{8}|glc_[A-Za-z0-9+/=]{32,}|eyJrIjoi[A-Za-z0-9+/=_-]{40,})"),
    Rule("sentry_token", (b"sntrys_", b"sntryu_"), rb"\bsntry(?:s_[A-Za-z0-9+/=_-]{40,}|u_[0-9a-f]{64}\b)"),
    Rule("sentry_dsn", (b"sentry",),
         rb"(?i)https?://([0-9a-f]{32}(?::[0-9a-f]{32})?)@[a-z0-9.-]{0,80}sentry[a-z0-9.:-]{0,80}/\d"),
    Rule("dynatrace_token", (b"dt0",), rb"\bdt0[a-z]\d\d\.[A-Z0-9]{24}\.[A-Z0-9]{64}\b"),
    Rule("cloudflare_token", (b"cloudflare",),
         rb"(?i)cloudflare[^\n]{0,40}?[^\w-]([0-9a-f]{37}|[\w-]{40})(?:[^\w-]|$)", 3.5),
    Rule("okta_token", (b"okta", b"ssws"),
         rb"(?i)(?:okta|ssws)[^\n]{0,40}?\b(00[\w-]{40})(?:[^\w-]|$)", 3.5),
    # Formats of no one provider
    Rule("jwt", (b"eyj",),
         rb"\beyJ[\w-]{8,}(?:\.eyJ[\w-]{4,}\.[\w-]*|(?:\.[\w-]*){4}|\.[\w-]{16,}(?:\.[\w-]{8,})?)", 3.5),
    Rule("authorization_header", (b"bearer", b"ssws"),
         rb"(?i)\b(?:bearer|ssws)[\s:=]{1,4}[\"']?([\w.~+/-]{20,}={0,2})", 3.3),
)  # fmt: skip

SHORT_RULES: tuple[Rule, ...] = (
    Rule("connection_string", (b"://",),
         rb"(?i)\b(?:postgres(?:ql)?|mysql|mariadb|mongodb|rediss?|amqps?|mssql|sqlserver|oracle|clickhouse|"
         rb"cockroachdb|cassandra|neo4j|bolt|nats|kafka|couchbase|ldaps?|snowflake|redshift)(?:\+[a-z0-9]{1,20})?"
         rb"://[^\s/:@\"'<>`]{0,100}:([^\s/\"'<>`]{1,200})@", 0.0),
    Rule("basic_auth_url", (b"://",),
         rb"(?i)\b[a-z][a-z0-9+.-]{1,30}://[^\s/:@\"'<>`?#]{0,100}:([^\s/\"'<>`?]{1,200})@", 0.0),
    Rule("basic_auth_header", (b"basic",),
         rb"(?i)\bbasic\s{1,4}([A-Za-z0-9+/]{12,}={0,2})(?:[^A-Za-z0-9+/=]|$)", 3.0, True),
    Rule("cli_credentials", (b"curl",),
         rb"(?i)\bcurl\b[^\n]{0,200}?\s(?:-u|--user)[\s=]{1,3}[\"']?[^\s\"':]{1,80}:([^\s\"']{4,100})", 1.5),
)  # fmt: skip
"""Those whose secret may be short, or a variable (`${PASSWORD}`) instead of a secret."""

RULES: tuple[Rule, ...] = (*_LONG_RULES, *SHORT_RULES)
