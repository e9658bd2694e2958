"""The stack: constructs, and the permissions between them in words."""

from __future__ import annotations

import aws_cdk as cdk
from constructs import Construct

from functions import manifest
from infra.alerts import Alerts
from infra.assets import Sources
from infra.database import Database
from infra.environment import HANDING_ON, uses_work_bucket
from infra.firewall import Firewall
from infra.functions import Functions
from infra.gateway import Gateway
from infra.identity import Identity
from infra.keys import Keys
from infra.migrations import Migrations
from infra.network import Network
from infra.page import Page
from infra.remember import TOLD, Remember
from infra.schedules import Schedules, target_names
from infra.settings import Profile
from infra.storage import Storage
from infra.watch import Watch
from infra.workflows import Workflows

OUTBOX = "outbox"
JOBS = "jobs"
REMEMBER = "remember"
ERASURE = "erasure"
LISTING = "listing"
MIGRATE = "migrate"


def _in_vpc(entry: manifest.Function) -> bool:
    return entry.network == "vpc"


class Remembrancer(cdk.Stack):
    """One deployment of the whole system."""

    def __init__(self, scope: Construct, profile: Profile, sources: Sources) -> None:
        super().__init__(
            scope,
            profile.prefix,
            env=cdk.Environment(region=profile.region),
            description="Remembrancer: a governed long-term memory for AI agents",
            termination_protection=profile.keep_data,
            tags=profile.tags,
        )
        keys = Keys(self, "Keys", profile)
        network = Network(self, "Network", profile)
        database = Database(
            self,
            "Database",
            profile,
            vpc=network.vpc,
            security_group=network.database,
            key=keys.data,
            master=manifest.function(MIGRATE).db_role or "",
        )
        storage = Storage(self, "Storage", profile, key=keys.data)
        functions = Functions(
            self,
            "Functions",
            profile,
            network=network,
            sources=sources,
            asynchronous=target_names() | {TOLD},
        )
        alerts = Alerts(self, "Alerts", profile, key=keys.data, dead_letters=functions.dead_letters)
        workflows = Workflows(self, "Workflows", profile, functions=functions)
        remember = Remember(
            self,
            "Remember",
            profile,
            machine=workflows.machines[REMEMBER],
            failed=functions[TOLD],
            call_model=functions["remember_call_model"],
            dead_letters=functions.dead_letters,
        )
        Schedules(self, "Schedules", profile, functions=functions, workflows=workflows)
        identity = Identity(self, "Identity", profile, pre_token=functions["pre_token"])
        gateway = Gateway(self, "Gateway", profile, functions=functions, pool=identity.pool)
        if profile.waf:
            Firewall(self, "Firewall", stage_arn=gateway.api.deployment_stage.stage_arn)
        page = Page(
            self,
            "Page",
            profile,
            bucket=storage.page,
            access_logs=storage.logs,
            api_host=gateway.host,
            sign_in=identity.domain,
        )
        client = identity.add_page_client(page.url)
        page.publish(
            {
                "api": "/v1",
                "client_id": client.user_pool_client_id,
                "issuer": identity.issuer,
                "sign_in": identity.domain,
            }
        )

        # Who may do what. The first argument of each loop is the same table that sets the variable.
        for entry, function in functions.chosen(_in_vpc):
            database.may_connect(function, entry.db_role or "")
        for function in functions.having("REM_KMS_MAC_KEY"):
            keys.may_derive(function)
        network.pass_key_derivation(keys.mac.key_arn)
        for function in functions.having("REM_OUTBOX_MACHINE"):
            workflows.may_start(function, OUTBOX)
        network.pass_machine_start(workflows.machines[OUTBOX].state_machine_arn)
        for function in functions.having("REM_JOBS_MACHINE"):
            workflows.may_start(function, JOBS)
        network.pass_machine_start(workflows.machines[JOBS].state_machine_arn)
        for function in functions.having("REM_ERASURE_MACHINE"):
            workflows.may_start(function, ERASURE)
        network.pass_machine_start(workflows.machines[ERASURE].state_machine_arn)
        for function in functions.having("REM_REMEMBER_MACHINE"):
            workflows.may_start(function, REMEMBER)
        network.pass_machine_start(workflows.machines[REMEMBER].state_machine_arn)
        for function in functions.having("REM_LISTING_MACHINE"):
            workflows.may_start(function, LISTING)
        network.pass_machine_start(workflows.machines[LISTING].state_machine_arn)
        for entry, function in functions.chosen(uses_work_bucket):
            role = functions.role_of(function)
            if entry.name == "remember_call_model":
                storage.may_answer(role)
            elif entry.name in HANDING_ON:
                storage.may_hand_on(role)
            else:
                storage.may_use_work(role)
        network.pass_objects(storage.work_objects)
        for function in functions.having("REM_EVENT_BUS"):
            alerts.may_publish(function)
        for function in functions.having("REM_SIGN_KEY"):
            keys.may_sign(function)
        for function in functions.having("REM_CHECKPOINT_BUCKET"):
            storage.may_store_checkpoints(functions.role_of(function))
        for function in functions.having("REM_LISTING_BUCKET"):
            storage.may_store_listings(functions.role_of(function))
        network.pass_additions(storage.listings)

        functions.give("REM_DB_HOST", database.host)
        functions.give("REM_PUBLIC_BASES", f"{page.url} {gateway.origin}")
        functions.give("REM_KMS_MAC_KEY", keys.mac.key_arn)
        functions.give("REM_OUTBOX_MACHINE", workflows.machines[OUTBOX].state_machine_arn)
        functions.give("REM_JOBS_MACHINE", workflows.machines[JOBS].state_machine_arn)
        functions.give("REM_ERASURE_MACHINE", workflows.machines[ERASURE].state_machine_arn)
        functions.give("REM_REMEMBER_MACHINE", workflows.machines[REMEMBER].state_machine_arn)
        functions.give("REM_LISTING_MACHINE", workflows.machines[LISTING].state_machine_arn)
        functions.give("REM_ASSESSOR", profile.assessor)
        functions.give("REM_ASSESSOR_MODEL", profile.assessor_model or "")
        functions.give("REM_GUARDRAIL", remember.guardrail)
        functions.give("REM_WORK_BUCKET", storage.work_name)
        functions.give("REM_EVENT_BUS", alerts.bus.event_bus_name)
        functions.give("REM_SIGN_KEY", keys.sign.key_arn)
        functions.give("REM_CHECKPOINT_BUCKET", storage.checkpoints_name)
        functions.give("REM_LISTING_BUCKET", storage.checkpoints_name)

        Migrations(
            self,
            "Migrations",
            migrate=functions[MIGRATE],
            timeout=cdk.Duration.seconds(manifest.function(MIGRATE).timeout_s),
            after=[database.cluster, *database.instances],
            before=[function for entry, function in functions.chosen(_in_vpc) if entry.name != MIGRATE],
        )
        Watch(
            self,
            "Watch",
            profile,
            topic=alerts.topic,
            functions={entry.name: functions[entry.name] for entry in manifest.FUNCTIONS},
            machines=workflows.machines.values(),
            api=gateway.api,
            dead_letters=functions.dead_letters,
            cluster_id=database.cluster.ref,
        )
        for name, value, why in (
            ("ApiUrl", gateway.origin, "agents call this; also the origin that signatures name"),
            ("PageUrl", page.url, "people review here"),
            ("Issuer", identity.issuer, "the issuer of principals"),
            ("UserPoolId", identity.pool.user_pool_id, "people and agents' clients are added here"),
            ("SignInUrl", identity.domain, "token endpoint: /oauth2/token"),
            ("PageClientId", client.user_pool_client_id, "the page's client"),
            ("MigrateFunction", functions[MIGRATE].function_name, "the bootstrap command invokes this"),
            (
                "CheckpointBucket",
                storage.checkpoints_name,
                "signed heads of the audit chains; listings of erasures and holds",
            ),
            ("CheckpointKey", keys.sign.key_arn, "its public half verifies the heads"),
            ("AlertTopic", alerts.topic.topic_arn, "subscribe people here"),
        ):
            cdk.CfnOutput(self, name, value=value, description=why)
