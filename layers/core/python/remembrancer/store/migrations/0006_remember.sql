-- Remember: an attempt is one run of one request; it is also its idempotency record, its lease and its fence.

create table attempt (
  tenant_id uuid not null,
  attempt_id uuid not null,
  -- The submitter's private space, whatever the target: an attempt is for the one who submitted it alone.
  space_id uuid not null,
  target_id uuid not null,
  principal_id uuid not null,
  operation text not null,
  key text not null,
  request_hash bytea not null,
  chain_id uuid not null, -- the first attempt under this key: what checkpoints hang on
  number int not null check (number > 0),
  state text not null default 'processing'
    check (state in ('processing', 'completed', 'failed_retryable', 'failed_final', 'erased')),
  token uuid not null,
  -- The credential the work goes on with; what it may do is read again in each of its transactions.
  issuer text not null,
  subject text not null,
  scopes text[] not null,
  groups text[] not null,
  correlation_id text not null,
  entered_at timestamptz not null,
  deadline timestamptz not null,
  lease_until timestamptz not null,
  turn int not null default 0 check (turn between 0 and 3),
  -- While it works: what was asked, what was found, what the assessor said. Gone when it is over.
  request jsonb,
  screened jsonb not null, -- the screen's report and the pii flag of each evidence item, as judged at the door
  context jsonb,
  assessment jsonb,
  -- What erasure finds an attempt by: subjects, bytes, and the rows whose text it was shown or speaks of.
  data_subjects text[] not null default '{}',
  content_shas bytea[] not null default '{}',
  refs uuid[] not null default '{}',
  status int,
  result text, -- final bytes: a replay is byte-identical
  finished_at timestamptz,
  -- Null: as long as its evidence lives.
  expires_at timestamptz,
  primary key (tenant_id, attempt_id),
  foreign key (tenant_id, principal_id) references principal,
  foreign key (tenant_id, space_id) references space,
  check ((state in ('processing', 'erased')) = (result is null))
);
-- One run at a time under a key, and a number for each: a second owner cannot be.
create unique index attempt_running on attempt (tenant_id, principal_id, operation, key) where state = 'processing';
create unique index attempt_chain on attempt (tenant_id, principal_id, operation, key, number);
create index attempt_lease on attempt (tenant_id, lease_until) where state = 'processing';
create index attempt_expiry on attempt (tenant_id, expires_at) where expires_at is not null;
create index attempt_subjects on attempt using gin (data_subjects);
create index attempt_refs on attempt using gin (refs);

-- Vectors of texts computed in the first phase, for the last one.
create table attempt_vector (
  tenant_id uuid not null,
  attempt_id uuid not null,
  space_id uuid not null,
  text_sha bytea not null check (octet_length(text_sha) = 32),
  contract text not null,
  embedding halfvec(384) not null,
  primary key (tenant_id, attempt_id, contract, text_sha),
  foreign key (tenant_id, attempt_id) references attempt on delete cascade
);

-- A validated answer of the assessor, for a later attempt of the same chain in the same context.
create table checkpoint (
  tenant_id uuid not null,
  chain_id uuid not null,
  context_hash bytea not null check (octet_length(context_hash) = 32),
  space_id uuid not null,
  attempt_id uuid not null,
  assessment jsonb not null,
  turns int not null,
  created_at timestamptz not null,
  expires_at timestamptz not null,
  primary key (tenant_id, chain_id, context_hash),
  foreign key (tenant_id, attempt_id) references attempt on delete cascade
);
create index checkpoint_by_attempt on checkpoint (tenant_id, attempt_id);
create index checkpoint_expiry on checkpoint (tenant_id, expires_at);

-- What was said to the assessor and what it said: protected diagnostics, 7 days.
create table exchange (
  tenant_id uuid not null,
  attempt_id uuid not null,
  turn int not null check (turn between 1 and 3),
  space_id uuid not null,
  asked text not null check (octet_length(asked) <= 65536),
  asked_bytes int not null,
  answered text check (octet_length(answered) <= 65536),
  answered_bytes int,
  issues jsonb not null default '[]',
  outcome text not null,
  model text,
  input_tokens int,
  output_tokens int,
  at timestamptz not null,
  expires_at timestamptz not null,
  primary key (tenant_id, attempt_id, turn),
  foreign key (tenant_id, attempt_id) references attempt on delete cascade
);
create index exchange_expiry on exchange (tenant_id, expires_at);

select rem_role(r) from unnest(array['rem_remember', 'rem_remember_prepare', 'rem_remember_check', 'rem_remember_commit',
                                    'rem_remember_failed']) as r;
select rem_isolate(t) from unnest(array['attempt', 'attempt_vector', 'checkpoint', 'exchange']) as t;
-- The one that records failures works for nobody, and sees attempts alone.
select rem_serve(array['rem_remember', 'rem_remember_prepare', 'rem_remember_check', 'rem_remember_commit']);
select rem_by_space(t) from unnest(array['attempt', 'attempt_vector', 'checkpoint', 'exchange']) as t;

-- The front: takes a request on, waits for its end, calls it off.
grant select, insert on attempt to rem_remember;

-- The first phase reads what is known.
grant select on attempt, checkpoint to rem_remember_prepare;
grant update (turn) on attempt to rem_remember_prepare;
grant insert on attempt_vector to rem_remember_prepare;
grant select on memory, memory_version, passage, occurrence, hold_out, entity, entity_name, mention, predicate,
  relationship, support, conflict, space to rem_remember_prepare;

-- The check of an answer.
grant select on attempt to rem_remember_check;
grant update (turn) on attempt to rem_remember_check;
grant select, insert on checkpoint, exchange to rem_remember_check;

-- The commit.
grant select on attempt to rem_remember_commit;
grant select, insert on memory, memory_version, passage, occurrence, hold_out, entity, entity_name, mention, predicate,
  relationship, support, conflict to rem_remember_commit;
grant update (superseded_at, superseded_by) on memory_version, relationship to rem_remember_commit;
grant select on space to rem_remember_commit;

-- Whoever may write the end of an attempt; the last two are told of it and work for no principal.
grant update (state, status, result, refs, request, context, assessment, finished_at, expires_at) on attempt
  to rem_remember, rem_remember_prepare, rem_remember_check, rem_remember_commit, rem_remember_failed, rem_sweep;
grant select, delete on attempt_vector
  to rem_remember, rem_remember_prepare, rem_remember_check, rem_remember_commit, rem_remember_failed;
grant select on attempt to rem_remember_failed;

-- Diagnostics, the janitor, erasure.
grant select on attempt, exchange to rem_audit;
grant select, delete on attempt, attempt_vector, checkpoint, exchange to rem_sweep;
grant update (content_shas) on attempt to rem_sweep;
grant select on attempt to rem_purge;
grant select, delete on attempt_vector, checkpoint, exchange to rem_purge;
grant update (state, request_hash, request, screened, context, assessment, data_subjects, content_shas, refs, result)
  on attempt to rem_purge;

grant insert on outbox to rem_remember, rem_remember_prepare, rem_remember_check, rem_remember_commit,
  rem_remember_failed;
grant select on principal to rem_remember, rem_remember_prepare, rem_remember_check, rem_remember_commit;
grant execute on function audit_append_many(jsonb) to rem_remember, rem_remember_prepare, rem_remember_check,
  rem_remember_commit, rem_remember_failed;

-- A workflow knows an attempt's id and nothing else: whose it is, and with what it goes on.
create function resolve_attempt(p_attempt uuid)
returns table (tenant_id uuid, issuer text, subject text, scopes text[], groups text[])
language sql stable security definer set search_path = public, pg_temp
as $$
  select a.tenant_id, a.issuer, a.subject, a.scopes, a.groups from attempt a where a.attempt_id = p_attempt
$$;
grant create on schema public to rem_definer;
alter function resolve_attempt(uuid) owner to rem_definer;
revoke create on schema public from rem_definer;
grant select (tenant_id, attempt_id, issuer, subject, scopes, groups) on attempt to rem_definer;
create policy definer_reads on attempt for select to rem_definer using (true);
revoke execute on function resolve_attempt(uuid) from public;
grant execute on function resolve_attempt(uuid)
  to rem_remember_prepare, rem_remember_check, rem_remember_commit, rem_remember_failed;
-- It is looked up without its tenant.
create unique index attempt_by_id on attempt (attempt_id);
