-- The rows of the model. Identifiers are UUIDv7 made by the application; every table carries its tenant.
-- Everything that restricts who may touch what is in 0003_access.sql.

create extension if not exists vector;

-- The two settings that a transaction carries (set by the unit of work, read by row level security).
create function rem_tenant() returns uuid language sql stable parallel safe
  return nullif(current_setting('rem.tenant', true), '')::uuid;
create function rem_spaces() returns uuid[] language sql stable parallel safe
  return string_to_array(nullif(current_setting('rem.spaces', true), ''), ',')::uuid[];

-- Identity ------------------------------------------------------------------------------------------------
create table tenant (
  tenant_id uuid primary key,
  name text not null,
  settings jsonb not null default '{}',
  created_at timestamptz not null
);

create table principal (
  tenant_id uuid not null references tenant,
  principal_id uuid not null,
  kind text not null check (kind in ('agent', 'human')),
  name text not null,
  capabilities text[] not null default '{}',
  team_grant text not null default 'none' check (team_grant in ('none', 'read', 'write')),
  active boolean not null default true,
  created_at timestamptz not null,
  primary key (tenant_id, principal_id)
);

-- Several credentials may map to one principal, so that rotation keeps ownership.
create table credential (
  tenant_id uuid not null,
  issuer text not null,
  subject text not null,
  principal_id uuid not null,
  created_at timestamptz not null,
  primary key (issuer, subject),
  foreign key (tenant_id, principal_id) references principal
);

create table signing_key (
  tenant_id uuid not null,
  key_id text not null,
  principal_id uuid not null,
  algorithm text not null check (algorithm in ('ed25519', 'ecdsa-p256-sha256')),
  public_key text not null,
  registered_at timestamptz not null,
  usable_from timestamptz not null,
  revoked_at timestamptz,
  primary key (tenant_id, key_id),
  unique (tenant_id, public_key), -- a signature says who, so no two share a key, and none comes back
  foreign key (tenant_id, principal_id) references principal
);

create table space (
  tenant_id uuid not null references tenant,
  space_id uuid not null,
  kind text not null check (kind in ('team_shared', 'private')),
  owner_id uuid,
  generation bigint not null default 0,
  primary key (tenant_id, space_id),
  foreign key (tenant_id, owner_id) references principal,
  check ((kind = 'private') = (owner_id is not null))
);
create unique index space_one_team on space (tenant_id) where kind = 'team_shared';
create unique index space_one_private on space (tenant_id, owner_id) where kind = 'private';

-- Knowledge -----------------------------------------------------------------------------------------------
create table memory (
  tenant_id uuid not null,
  memory_id uuid not null,
  space_id uuid not null,
  owner_id uuid not null,
  domain text not null,
  kind text not null check (kind in ('fact', 'procedure', 'step', 'decision', 'episodic')),
  title text,
  content text not null,
  author text,
  origin text not null check (origin in ('human', 'model', 'imported')),
  source text not null,
  assertion_kind text not null check (assertion_kind in ('stated', 'inferred')),
  admitted_by text not null check (admitted_by in ('proposal', 'ingest', 'remember', 'session')),
  approved_by uuid,
  proposal_id uuid,
  data_subjects text[] not null default '{}',
  observed_at timestamptz,
  parent_id uuid,
  ordinal int,
  source_uri text,
  revision text,
  heading_path text,
  line_start int,
  line_end int,
  pii boolean not null,
  screen jsonb not null,
  screen_overridden boolean not null default false,
  held_graph jsonb, -- entities and relations of a held memory, built into edges when it is released
  confidence double precision not null,
  confidence_parts jsonb not null,
  dedup_key bytea not null,
  created_at timestamptz not null,
  primary key (tenant_id, memory_id),
  foreign key (tenant_id, space_id) references space,
  foreign key (tenant_id, owner_id) references principal
);
-- The duplicate check of every write, before anything is inserted.
create index memory_by_dedup on memory (tenant_id, dedup_key);
-- GET memories: newest first within a space.
create index memory_by_time on memory (tenant_id, space_id, created_at, memory_id);
-- Erasure by data subject and by owner.
create index memory_by_subject on memory using gin (data_subjects);
create index memory_by_owner on memory (tenant_id, owner_id);

create table memory_version (
  tenant_id uuid not null,
  memory_id uuid not null,
  space_id uuid not null,
  version int not null check (version > 0),
  valid_from timestamptz,
  valid_to timestamptz,
  created_at timestamptz not null,
  superseded_at timestamptz,
  superseded_by uuid,
  expires_at timestamptz,
  primary key (tenant_id, memory_id, version),
  foreign key (tenant_id, memory_id) references memory on delete cascade,
  check (valid_from is null or valid_to is null or valid_from < valid_to)
);
-- One current belief a memory; also the path of every default view.
create unique index memory_version_current on memory_version (tenant_id, memory_id) where superseded_at is null;

create table passage (
  tenant_id uuid not null,
  passage_id uuid not null,
  memory_id uuid not null,
  space_id uuid not null,
  ordinal int not null,
  span_start int not null,
  span_end int not null,
  rendered text not null,
  lexemes tsvector not null,
  embedding halfvec(384) not null,
  contract text not null,
  primary key (tenant_id, passage_id),
  foreign key (tenant_id, memory_id) references memory on delete cascade
);
create index passage_by_memory on passage (tenant_id, memory_id);
-- Exact scans of a small space start here; the planner leaves it for HNSW when the space is large.
create index passage_by_space on passage (tenant_id, space_id);
create index passage_lexemes on passage using gin (lexemes);
create index passage_embedding on passage using hnsw (embedding halfvec_cosine_ops);

create table occurrence (
  tenant_id uuid not null,
  occurrence_id uuid not null,
  memory_id uuid not null,
  space_id uuid not null,
  content text, -- null: the same bytes as the memory's
  submitted_by uuid not null,
  submitted_at timestamptz not null,
  source text not null,
  correlation_id text not null,
  primary key (tenant_id, occurrence_id),
  foreign key (tenant_id, memory_id) references memory on delete cascade
);
create index occurrence_by_memory on occurrence (tenant_id, memory_id);

create table hold_out (
  tenant_id uuid not null,
  hold_out_id uuid not null,
  memory_id uuid not null,
  space_id uuid not null,
  reason text not null check (reason in ('screen', 'integrity', 'incident', 'rejected')),
  opened_at timestamptz not null,
  opened_by uuid,
  closed_at timestamptz,
  closed_by uuid,
  primary key (tenant_id, hold_out_id),
  foreign key (tenant_id, memory_id) references memory on delete cascade
);
-- Every retrieval asks "is none open"; few rows are.
create index hold_out_open on hold_out (tenant_id, memory_id) where closed_at is null;

create table legal_hold (
  tenant_id uuid not null,
  legal_hold_id uuid not null,
  memory_id uuid not null,
  reason text not null,
  placed_at timestamptz not null,
  placed_by uuid not null,
  released_at timestamptz,
  released_by uuid,
  primary key (tenant_id, legal_hold_id),
  foreign key (tenant_id, memory_id) references memory
);
create index legal_hold_active on legal_hold (tenant_id, memory_id) where released_at is null;

-- The graph -----------------------------------------------------------------------------------------------
create table entity (
  tenant_id uuid not null,
  entity_id uuid not null,
  space_id uuid not null,
  kind text not null,
  created_at timestamptz not null,
  primary key (tenant_id, entity_id),
  foreign key (tenant_id, space_id) references space
);

create table entity_name (
  tenant_id uuid not null,
  entity_id uuid not null,
  space_id uuid not null,
  kind text not null,
  name text not null,
  name_key text not null,
  canonical boolean not null,
  primary key (tenant_id, entity_id, name_key),
  foreign key (tenant_id, entity_id) references entity on delete cascade
);
-- Two writers of one new name meet here, so a name and kind is one entity a space.
create unique index entity_name_canonical on entity_name (tenant_id, space_id, kind, name_key) where canonical;
create index entity_name_by_key on entity_name (tenant_id, space_id, name_key);

-- Which memory brought which name: what erasure needs to know which names are left with nothing.
create table mention (
  tenant_id uuid not null,
  space_id uuid not null,
  memory_id uuid not null,
  entity_id uuid not null,
  name_key text not null,
  primary key (tenant_id, memory_id, entity_id, name_key),
  foreign key (tenant_id, memory_id) references memory on delete cascade,
  foreign key (tenant_id, entity_id, name_key) references entity_name on delete cascade
);
create index mention_by_name on mention (tenant_id, entity_id, name_key);

create table predicate (
  tenant_id uuid not null,
  space_id uuid not null,
  predicate_key text not null,
  kind text not null check (kind in ('state', 'event')),
  cardinality text not null check (cardinality in ('one', 'many')),
  created_at timestamptz not null,
  primary key (tenant_id, space_id, predicate_key),
  foreign key (tenant_id, space_id) references space
);

create table relationship (
  tenant_id uuid not null,
  relationship_id uuid not null,
  version int not null check (version > 0),
  space_id uuid not null,
  owner_id uuid not null,
  subject_id uuid not null,
  predicate_key text not null,
  object_id uuid,
  value_type text check (value_type in ('string', 'number', 'boolean', 'date', 'date_time')),
  value_canonical text,
  value_original text,
  value_unit text,
  polarity text not null check (polarity in ('+', '-')),
  valid_from timestamptz,
  valid_to timestamptz,
  created_at timestamptz not null,
  superseded_at timestamptz,
  superseded_by uuid,
  primary key (tenant_id, relationship_id, version),
  foreign key (tenant_id, subject_id) references entity (tenant_id, entity_id),
  foreign key (tenant_id, object_id) references entity (tenant_id, entity_id),
  foreign key (tenant_id, space_id, predicate_key) references predicate,
  check ((object_id is null) <> (value_type is null)),
  check ((value_type is null) = (value_canonical is null)),
  check (valid_from is null or valid_to is null or valid_from < valid_to)
);
create unique index relationship_current on relationship (tenant_id, relationship_id) where superseded_at is null;
-- Upserts and conflicts look up a subject and predicate; the graph leg walks both ways.
create index relationship_by_subject on relationship (tenant_id, subject_id, predicate_key);
create index relationship_by_object on relationship (tenant_id, object_id);
-- Erasure asks whether a predicate is still used.
create index relationship_by_predicate on relationship (tenant_id, space_id, predicate_key);

create table support (
  tenant_id uuid not null,
  support_id uuid not null,
  space_id uuid not null,
  relationship_id uuid not null,
  version int not null,
  memory_id uuid not null,
  occurrence_id uuid not null,
  span_start int,
  span_end int,
  primary key (tenant_id, support_id),
  foreign key (tenant_id, relationship_id, version) references relationship on delete cascade,
  foreign key (tenant_id, memory_id) references memory on delete cascade
);
create unique index support_once on support (tenant_id, relationship_id, version, memory_id, occurrence_id);
create index support_by_memory on support (tenant_id, memory_id);

create table conflict (
  tenant_id uuid not null,
  conflict_id uuid not null,
  space_id uuid not null,
  memory_id uuid not null,
  other_id uuid not null,
  reason text not null,
  explanation text not null,
  status text not null default 'open' check (status in ('open', 'resolved', 'dismissed')),
  opened_at timestamptz not null,
  closed_at timestamptz,
  closed_by uuid,
  primary key (tenant_id, conflict_id),
  foreign key (tenant_id, memory_id) references memory on delete cascade,
  foreign key (tenant_id, other_id) references memory on delete cascade
);
create index conflict_by_memory on conflict (tenant_id, memory_id);
create index conflict_by_other on conflict (tenant_id, other_id);
create index conflict_open on conflict (tenant_id, conflict_id) where status = 'open';

-- The gate ------------------------------------------------------------------------------------------------
create table proposal (
  tenant_id uuid not null,
  proposal_id uuid not null,
  space_id uuid not null,
  submitted_by uuid not null,
  status text not null default 'pending' check (status in ('pending', 'approved', 'rejected', 'expired')),
  body jsonb not null, -- the request as captured: title, content, kind, times, entities, relations
  salt bytea not null check (octet_length(salt) = 16),
  pending_key bytea not null,
  content_sha bytea not null, -- erasure finds every proposal that holds the same bytes
  source_prompt text,
  pii boolean not null,
  screen jsonb not null,
  scores jsonb not null,
  conflict_memory_id uuid,
  conflict_version int,
  correlation_id text not null,
  created_at timestamptz not null,
  deadline timestamptz not null,
  edited_at timestamptz,
  edited_by uuid,
  warned_at timestamptz,
  decided_at timestamptz,
  decided_by uuid,
  decision jsonb,
  memory_id uuid,
  primary key (tenant_id, proposal_id),
  foreign key (tenant_id, space_id) references space,
  foreign key (tenant_id, submitted_by) references principal
);
-- An identical pending proposal is answered, not repeated.
create unique index proposal_pending_once on proposal (tenant_id, submitted_by, pending_key) where status = 'pending';
-- The queue: by deadline among the pending; by decision among the decided.
create index proposal_queue on proposal (tenant_id, status, deadline, proposal_id);
create index proposal_decided on proposal (tenant_id, decided_at, proposal_id) where decided_at is not null;
create index proposal_by_submitter on proposal (tenant_id, submitted_by, deadline, proposal_id);
create index proposal_by_content on proposal (tenant_id, content_sha);
create index proposal_by_conflict on proposal (tenant_id, conflict_memory_id) where conflict_memory_id is not null;
create index proposal_by_memory on proposal (tenant_id, memory_id) where memory_id is not null;

-- Operational rows ----------------------------------------------------------------------------------------
create table outbox (
  tenant_id uuid not null,
  delivery_id uuid not null,
  kind text not null,
  target text not null,
  created_at timestamptz not null,
  claimed_until timestamptz,
  attempts int not null default 0,
  delivered_at timestamptz,
  primary key (tenant_id, delivery_id)
);
create index outbox_due on outbox (tenant_id, created_at) where delivered_at is null;

create table idempotency (
  tenant_id uuid not null,
  principal_id uuid not null,
  operation text not null,
  key text not null,
  request_hash bytea not null,
  state text not null check (state in ('processing', 'completed', 'erased')),
  token uuid not null,
  lease_until timestamptz not null,
  status int,
  body text,
  refs uuid[] not null default '{}',
  expires_at timestamptz not null,
  primary key (tenant_id, principal_id, operation, key)
);
-- Erasure finds the results kept for replay that name an erased row; the janitor finds the expired.
create index idempotency_refs on idempotency using gin (refs);
create index idempotency_expiry on idempotency (tenant_id, expires_at);

create table nonce (
  tenant_id uuid not null,
  key_id text not null,
  nonce text not null,
  expires_at timestamptz not null,
  primary key (tenant_id, key_id, nonce)
);

create table tombstone (
  tenant_id uuid not null,
  tombstone_id uuid not null,
  mac bytea not null check (octet_length(mac) = 32),
  erased_at timestamptz not null,
  erased_by uuid not null,
  reason text not null,
  primary key (tenant_id, tombstone_id)
);
create unique index tombstone_mac on tombstone (tenant_id, mac);

-- Where a signed head of the audit chain was stored; the signature and the object are the proof, not this row.
create table audit_checkpoint (
  tenant_id uuid not null,
  seq bigint not null,
  head bytea not null check (octet_length(head) = 32),
  at timestamptz not null,
  object_key text not null,
  version_id text,
  signature text not null,
  primary key (tenant_id, seq)
);
