-- Imports, jobs, domain centroids and reports; the functions that curate, report and work in the background.

-- What a caller said of a memory that decides nothing here: a confidence, an id of another system.
alter table memory add column claimed jsonb;
-- Where a submission lies in its revision of the source: a part that stays the same is the same memory.
alter table occurrence add column revision text, add column ordinal int, add column line_start int,
  add column line_end int;
alter table entity add column merged_into uuid;

-- A new revision of a source finds its parts; the address itself may be longer than an index entry.
create index memory_by_source on memory (tenant_id, space_id, hashtextextended(source_uri, 0))
  where source_uri is not null;

create table job (
  tenant_id uuid not null,
  job_id uuid not null,
  principal_id uuid not null,
  kind text not null check (kind in ('import', 'export')),
  state text not null default 'working' check (state in ('working', 'done', 'failed', 'erased')),
  -- The credential the work goes on with; what it may do is read again in each of its transactions.
  issuer text not null,
  subject text not null,
  scopes text[] not null,
  groups text[] not null,
  correlation_id text not null,
  request jsonb not null,
  total int not null default 0,
  done int not null default 0,
  result jsonb,
  failure text,
  object_key text,
  created_at timestamptz not null,
  claimed_until timestamptz,
  finished_at timestamptz,
  expires_at timestamptz not null,
  primary key (tenant_id, job_id),
  foreign key (tenant_id, principal_id) references principal
);
-- The next piece of work, and what erasure of a bundle looks for.
create index job_open on job (tenant_id, created_at) where state = 'working';

-- Screened text that is not a memory yet: nothing that reads memories looks here.
create table job_item (
  tenant_id uuid not null,
  job_id uuid not null,
  ordinal int not null,
  space_id uuid not null,
  body jsonb not null,
  primary key (tenant_id, job_id, ordinal),
  foreign key (tenant_id, job_id) references job on delete cascade
);

create table job_passage (
  tenant_id uuid not null,
  job_id uuid not null,
  item int not null,
  ordinal int not null,
  space_id uuid not null,
  span_start int not null,
  span_end int not null,
  rendered text not null,
  embedding halfvec(384),
  contract text,
  primary key (tenant_id, job_id, item, ordinal),
  foreign key (tenant_id, job_id, item) references job_item on delete cascade
);
create index job_passage_open on job_passage (tenant_id, job_id, item, ordinal) where embedding is null;

create table centroid (
  tenant_id uuid not null,
  space_id uuid not null,
  domain text not null,
  contract text not null,
  embedding vector(384) not null,
  members int not null,
  computed_at timestamptz not null,
  primary key (tenant_id, space_id, domain, contract),
  foreign key (tenant_id, space_id) references space
);

-- Ids, kinds, counts, dates and reasons alone: a report outlives what it speaks of.
create table report (
  tenant_id uuid not null,
  report_id uuid not null,
  kind text not null check (kind in ('decay', 'consistency')),
  document jsonb not null,
  object_key text,
  created_at timestamptz not null,
  primary key (tenant_id, report_id),
  foreign key (tenant_id) references tenant
);
create index report_by_time on report (tenant_id, kind, created_at, report_id);

select rem_role(r) from unnest(array['rem_curate', 'rem_report', 'rem_job', 'rem_upkeep']) as r;
select rem_isolate(t) from unnest(array['job', 'job_item', 'job_passage', 'centroid', 'report']) as t;
select rem_serve(array['rem_curate', 'rem_report', 'rem_job']);
select rem_by_space(t) from unnest(array['job_item', 'job_passage', 'centroid']) as t;

-- Imports: a request stages, the worker embeds and publishes.
grant select, insert on job, job_item to rem_ingest;
grant select on centroid to rem_ingest, rem_job, rem_approve;
grant select on space to rem_job;
grant select, insert on memory, memory_version, passage, occurrence, hold_out, entity, entity_name, mention, predicate,
  relationship, support, conflict to rem_job;
grant update (superseded_at, superseded_by) on memory_version, relationship to rem_job;
grant select on job, job_item, job_passage to rem_job;
grant update (state, total, done, result, failure, object_key, claimed_until, finished_at, expires_at) on job to rem_job;
grant insert on job_passage to rem_job;
grant update (embedding, contract) on job_passage to rem_job;
grant delete on job_item, job_passage to rem_job;
grant select on job to rem_system;

-- Curation: versions are closed and added, never changed.
grant select on memory, memory_version, passage, occurrence, hold_out, entity, entity_name, mention, predicate, relationship,
  support, conflict to rem_curate, rem_report;
grant insert on memory_version, relationship, support, entity_name, mention to rem_curate;
grant update (superseded_at, superseded_by) on memory_version, relationship to rem_curate;
grant update (merged_into) on entity to rem_curate;
grant update (status, closed_at, closed_by) on conflict to rem_curate;

-- Reports and exports.
grant select, insert on job to rem_report;
grant select on report to rem_report;
grant select on memory, memory_version, passage, hold_out, entity, entity_name, conflict, space to rem_upkeep;
grant select, insert, delete on centroid to rem_upkeep;
grant select, insert on report to rem_upkeep;

-- Erasure takes the bundles that may hold the bytes and the texts that wait; the janitor what is over.
grant select on job to rem_purge;
grant update (state, result, object_key) on job to rem_purge;
grant select, delete on job, job_item, report to rem_sweep;

grant select, insert, delete on idempotency to rem_curate, rem_report;
grant update (state, status, body, refs, token, lease_until) on idempotency to rem_curate, rem_report;
grant insert on outbox to rem_curate, rem_report, rem_job, rem_upkeep;
grant select on principal to rem_curate, rem_report, rem_job;
grant execute on function resolve_principal(text, text) to rem_curate, rem_report, rem_job;
grant execute on function list_tenants() to rem_job, rem_upkeep;
grant execute on function audit_append_many(jsonb) to rem_curate, rem_report, rem_job, rem_upkeep, rem_system;
