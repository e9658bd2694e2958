-- Requests of data subjects, and erasures of more rows than one transaction takes.

-- Long erasures and subject bundles are jobs of a worker of their own: it alone may delete, and reaches every space.
alter table job drop constraint job_kind_check;
alter table job add constraint job_kind_check check (kind in ('import', 'export', 'erase', 'dsar'));

-- What a job has still to erase: ids alone. A row goes in the transaction that erases what it names.
create table erasure_item (
  tenant_id uuid not null,
  job_id uuid not null,
  kind text not null check (kind in ('memory', 'proposal', 'job', 'occurrence')),
  row_id uuid not null,
  primary key (tenant_id, job_id, kind, row_id),
  foreign key (tenant_id, job_id) references job on delete cascade
);

-- Which erasure a tombstone is of: a certificate names the root over its own.
alter table tombstone add column erasure_id uuid;
create index tombstone_by_erasure on tombstone (tenant_id, erasure_id) where erasure_id is not null;

-- A request names nobody: `selectors` is a keyed digest of how its subject is found, the rest are codes and counts.
create table dsar (
  tenant_id uuid not null,
  dsar_id uuid not null,
  action text not null check (action in ('register', 'export', 'purge', 'both', 'refuse')),
  state text not null check (state in ('open', 'working', 'done', 'failed', 'refused')),
  jurisdiction text not null,
  selectors bytea not null check (octet_length(selectors) = 32),
  found_by text[] not null,
  case_reference text check (octet_length(case_reference) <= 64),
  reason text,
  received_at timestamptz not null,
  deadline timestamptz not null,
  warned int not null default 0, -- how many of the warnings went out
  requested_by uuid not null,
  created_at timestamptz not null,
  closed_at timestamptz,
  closed_by uuid, -- the request whose act answered this one
  job_id uuid,
  located jsonb not null,
  certificate jsonb,
  primary key (tenant_id, dsar_id),
  foreign key (tenant_id, requested_by) references principal
);
create index dsar_due on dsar (tenant_id, deadline) where closed_at is null;

-- Who was shown personal data unmasked: ids alone. Written past the transaction that reads, so that reading locks
-- nothing; the chain gets one digest a day.
create table pii_read (
  tenant_id uuid not null,
  read_id uuid not null,
  principal_id uuid not null,
  at timestamptz not null,
  through text not null, -- the database role of the function that showed it
  rows_shown text[] not null,
  primary key (tenant_id, read_id)
);
create index pii_read_by_time on pii_read (tenant_id, at, read_id);

create table pii_day (
  tenant_id uuid not null,
  day date not null,
  reads int not null,
  digest bytea not null check (octet_length(digest) = 32),
  primary key (tenant_id, day)
);

select rem_isolate(t) from unnest(array['erasure_item', 'dsar', 'pii_read', 'pii_day']) as t;

grant select, insert, delete on erasure_item to rem_purge;
grant insert on job to rem_purge;
grant update (total, done, failure, claimed_until, finished_at, expires_at) on job to rem_purge;
grant select, insert on dsar to rem_purge;
grant update (state, closed_at, closed_by, located, certificate) on dsar to rem_purge;
-- A certificate says where the chain stood, and is looked up in it.
grant select on audit_head, audit_event to rem_purge;
grant execute on function list_tenants() to rem_purge;
grant select, delete on dsar to rem_sweep;
grant update (warned) on dsar to rem_sweep;

create function pii_read_log(p_issuer text, p_subject text, p_rows text[]) returns void
language plpgsql security definer set search_path = public, pg_temp
as $$
declare
  v_tenant uuid;
  v_principal uuid;
begin
  select c.tenant_id, c.principal_id into strict v_tenant, v_principal
    from credential c where c.issuer = p_issuer and c.subject = p_subject;
  perform set_config('rem.tenant', v_tenant::text, true);
  insert into pii_read (tenant_id, read_id, principal_id, at, through, rows_shown)
    values (v_tenant, gen_random_uuid(), v_principal, clock_timestamp(), session_user, p_rows);
end
$$;
grant create on schema public to rem_definer;
alter function pii_read_log(text, text, text[]) owner to rem_definer;
revoke create on schema public from rem_definer;
grant insert on pii_read to rem_definer;
revoke execute on function pii_read_log(text, text, text[]) from public;
grant execute on function pii_read_log(text, text, text[])
  to rem_recall, rem_proposal, rem_approve, rem_curate, rem_report, rem_job, rem_purge;
grant select on pii_read, pii_day to rem_audit;
grant select, delete on pii_read to rem_sweep;
grant select, insert, delete on pii_day to rem_sweep;

-- The end of a tenant, asked for by its admin, seen through by an operator.
alter table tenant add column offboarded_at timestamptz;
grant select on tenant to rem_purge;
grant update (active) on principal to rem_purge;
