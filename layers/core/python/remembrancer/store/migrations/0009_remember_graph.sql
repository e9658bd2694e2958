-- Remember: where evidence came from, what supports what, the registry of predicates, sides of a conflict.

-- A source whose evidence comes in revisions, each owner's apart. The key may be longer than an index entry.
create table evidence_source (
  tenant_id uuid not null,
  source_id uuid not null,
  space_id uuid not null,
  owner_id uuid not null,
  source_key text not null,
  key_sha bytea not null check (octet_length(key_sha) = 32),
  revision text not null,
  revised_at timestamptz not null,
  primary key (tenant_id, source_id),
  foreign key (tenant_id, space_id) references space,
  foreign key (tenant_id, owner_id) references principal
);
create unique index evidence_source_once on evidence_source (tenant_id, space_id, owner_id, key_sha);

-- What a caller said of one submission of evidence; the submitted bytes are the occurrence's own.
create table submission (
  tenant_id uuid not null,
  occurrence_id uuid not null,
  memory_id uuid not null,
  space_id uuid not null,
  attempt_id uuid not null,
  item int not null, -- index in the batch
  source_type text not null check (source_type in ('conversation', 'document', 'observation', 'manual')),
  source text,
  source_group text,
  authority text not null check (authority in ('authoritative', 'primary', 'secondary', 'inferred', 'unknown')),
  source_id uuid,
  revision text,
  labels text[] not null default '{}',
  metadata jsonb not null default '{}',
  observed_at timestamptz,
  data_subjects text[] not null default '{}',
  primary key (tenant_id, occurrence_id),
  foreign key (tenant_id, occurrence_id) references occurrence on delete cascade,
  foreign key (tenant_id, memory_id) references memory on delete cascade,
  foreign key (tenant_id, source_id) references evidence_source,
  check ((source_id is null) = (revision is null))
);
create index submission_by_memory on submission (tenant_id, memory_id);
create index submission_by_source on submission (tenant_id, source_id, revision) where source_id is not null;
-- A reuse may name a subject that the reused text's own row does not.
create index submission_by_subject on submission using gin (data_subjects);

-- Several spans of one submission may support one relationship.
drop index support_once;
create unique index support_once on support (tenant_id, relationship_id, version, memory_id, occurrence_id,
  coalesce(span_start, -1), coalesce(span_end, -1));

-- Empty kinds: any.
alter table predicate add column subject_kinds text[] not null default '{}',
  add column object_kinds text[] not null default '{}';
-- The key under which a predicate was proposed when it was registered under another; it goes with what brought it.
create table predicate_alias (
  tenant_id uuid not null,
  space_id uuid not null,
  alias text not null,
  predicate_key text not null,
  memory_id uuid not null,
  primary key (tenant_id, space_id, alias, predicate_key, memory_id),
  foreign key (tenant_id, space_id, predicate_key) references predicate on delete cascade,
  foreign key (tenant_id, memory_id) references memory on delete cascade
);
create index predicate_alias_by_memory on predicate_alias (tenant_id, memory_id);

-- Relationships that contradict each other; the memories beside them are what each rests on.
alter table conflict add column relationship_id uuid, add column relationship_version int,
  add column other_relationship_id uuid, add column other_version int,
  add check (num_nulls(relationship_id, relationship_version, other_relationship_id, other_version) in (0, 4)),
  add foreign key (tenant_id, relationship_id, relationship_version) references relationship on delete cascade,
  add foreign key (tenant_id, other_relationship_id, other_version) references relationship on delete cascade;
create index conflict_by_relationship on conflict (tenant_id, relationship_id) where relationship_id is not null;
create index conflict_by_other_relationship on conflict (tenant_id, other_relationship_id)
  where other_relationship_id is not null;

-- What stands in one place: the facts of a subject under a predicate.
create index relationship_slot on relationship (tenant_id, space_id, subject_id, predicate_key)
  where superseded_at is null;

select rem_isolate(t), rem_by_space(t) from unnest(array['evidence_source', 'submission', 'predicate_alias']) as t;

grant select on evidence_source, submission, predicate_alias to rem_remember_prepare;
grant select, insert on evidence_source, submission, predicate_alias to rem_remember_commit;
grant update (revision, revised_at) on evidence_source to rem_remember_commit;
grant select on centroid to rem_remember_commit;
grant select on submission, predicate_alias to rem_recall;
grant select, delete on evidence_source, submission to rem_purge;
-- A supersession or a correction settles what stood open between the two.
grant update (status, closed_at, closed_by) on conflict to rem_remember_commit;
