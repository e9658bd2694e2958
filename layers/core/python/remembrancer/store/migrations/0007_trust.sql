-- Erasure by subject and by owner, with the fences that keep what was in flight from coming back.

-- The generations of a principal's spaces are read with the principal, at the start of a request; what is
-- written compares them again under the space's lock.
drop function resolve_principal(text, text);
create function resolve_principal(p_issuer text, p_subject text)
returns table (tenant_id uuid, principal_id uuid, kind text, capabilities text[], team_grant text, active boolean,
               team_space uuid, team_generation bigint, private_space uuid, private_generation bigint, settings jsonb)
language sql stable security definer set search_path = public, pg_temp
as $$
  select p.tenant_id, p.principal_id, p.kind, p.capabilities, p.team_grant, p.active,
         team.space_id, team.generation, own.space_id, own.generation, t.settings
  from credential c
  join principal p on p.tenant_id = c.tenant_id and p.principal_id = c.principal_id
  join tenant t on t.tenant_id = c.tenant_id
  left join space team on team.tenant_id = p.tenant_id and team.kind = 'team_shared'
  left join space own on own.tenant_id = p.tenant_id and own.owner_id = p.principal_id
  where c.issuer = p_issuer and c.subject = p_subject
$$;
grant create on schema public to rem_definer;
alter function resolve_principal(text, text) owner to rem_definer;
revoke create on schema public from rem_definer;
revoke execute on function resolve_principal(text, text) from public;
grant execute on function resolve_principal(text, text)
  to rem_ingest, rem_proposal, rem_approve, rem_recall, rem_purge, rem_audit, rem_admin, rem_system,
     rem_curate, rem_report, rem_job;
grant select on space to rem_ingest, rem_proposal;

-- Staged text of an import goes with its job.
grant select, delete on job_item to rem_purge;

-- Legal holds -----------------------------------------------------------------------------------------------
-- One order may hold many memories, and a memory may be under many orders. An order on a data subject holds
-- whatever names the subject, now or later: it keeps a keyed digest of the subject and no name.
create table legal_order (
  tenant_id uuid not null,
  hold_id uuid not null,
  reason text not null,
  case_reference text not null check (octet_length(case_reference) <= 64),
  subject bytea check (octet_length(subject) = 32),
  placed_at timestamptz not null,
  placed_by uuid not null,
  released_at timestamptz,
  released_by uuid,
  release_reason text,
  primary key (tenant_id, hold_id),
  foreign key (tenant_id, placed_by) references principal
);
-- Every erasure asks which subjects are held.
create index legal_order_subjects on legal_order (tenant_id, subject) where released_at is null and subject is not null;

alter table legal_hold add column hold_id uuid, add foreign key (tenant_id, hold_id) references legal_order;
create index legal_hold_by_order on legal_hold (tenant_id, hold_id);

do $$
declare
  t text;
begin
  foreach t in array array['legal_order'] loop
    execute format('alter table %I enable row level security', t);
    execute format('alter table %I force row level security', t);
    execute format('create policy tenant_isolation on %I using (tenant_id = rem_tenant()) with check (tenant_id = rem_tenant())', t);
    execute format('create policy migration on %I to %I using (true) with check (true)', t, current_user);
    execute format('revoke all on %I from public', t);
  end loop;
end $$;
grant select, insert on legal_order to rem_purge;
grant update (released_at, released_by, release_reason) on legal_order to rem_purge;
grant insert on legal_hold to rem_purge;
grant update (released_at, released_by) on legal_hold to rem_purge;
