-- Who may touch what: one role a function, forced row level security, and the few functions that look
-- across tenants. Row level security stops our own missing WHERE, not a compromised function that sets
-- the variable: the grants below are what limits that one.

-- What every migration says of its roles and tables, said once. For the migration role alone.
-- Roles are cluster-wide: they may exist already.
create function rem_role(p_name text) returns void language plpgsql as $$
begin
  if not exists (select from pg_roles where rolname = p_name) then
    execute format('create role %I login', p_name);
  end if;
  if exists (select from pg_roles where rolname = 'rds_iam') then
    execute format('grant rds_iam to %I', p_name);
  end if;
end $$;

-- Tenant isolation, and the migration role's own policy.
create function rem_isolate(p_table text) returns void language plpgsql as $$
begin
  execute format('alter table %I enable row level security', p_table);
  execute format('alter table %I force row level security', p_table);
  execute format('create policy tenant_isolation on %I using (tenant_id = rem_tenant()) with check (tenant_id = rem_tenant())', p_table);
  execute format('create policy migration on %I to %I using (true) with check (true)', p_table, current_user);
  execute format('revoke all on %I from public', p_table);
end $$;

-- Functions that serve a principal see its own private space and the team's, nothing else: the serving roles.
create function rem_serving() returns text language sql stable as $$
  select string_agg(format('%I', r), ', ' order by r)
  from (select unnest(roles)::text as r from pg_policies
        where schemaname = 'public' and tablename = 'memory' and policyname = 'space_visible') as bound
$$;

create function rem_by_space(p_table text) returns void language plpgsql as $$
begin
  execute format('create policy space_visible on %I as restrictive to %s
                  using (space_id = any (rem_spaces())) with check (space_id = any (rem_spaces()))', p_table, rem_serving());
end $$;

-- New functions that serve principals join those that the policy binds.
create function rem_serve(p_roles text[]) returns void language plpgsql as $$
declare
  t text;
  serving text;
begin
  select rem_serving() || ', ' || string_agg(format('%I', r), ', ') into serving from unnest(p_roles) as r;
  for t in select tablename from pg_policies where schemaname = 'public' and policyname = 'space_visible' loop
    execute format('alter policy space_visible on %I to %s', t, serving);
  end loop;
end $$;

revoke execute on function rem_role(text), rem_isolate(text), rem_serving(), rem_by_space(text), rem_serve(text[]) from public;

select rem_role(r) from unnest(array['rem_ingest', 'rem_proposal', 'rem_approve', 'rem_recall', 'rem_purge', 'rem_audit',
                                    'rem_admin', 'rem_system', 'rem_sweep', 'rem_outbox']) as r;

-- Owner of the functions that must see across tenants or write where their callers may not.
do $$
begin
  if not exists (select from pg_roles where rolname = 'rem_definer') then
    create role rem_definer nologin;
  end if;
  execute format('grant rem_definer to %I', current_user);
end $$;

select rem_isolate(c.relname) from pg_class c join pg_attribute a on a.attrelid = c.oid
where c.relnamespace = 'public'::regnamespace and c.relkind = 'r' and a.attname = 'tenant_id';

create policy space_visible on memory as restrictive to rem_ingest, rem_proposal, rem_approve, rem_recall
  using (space_id = any (rem_spaces())) with check (space_id = any (rem_spaces()));
select rem_by_space(t) from unnest(array['memory_version', 'passage', 'occurrence', 'hold_out', 'entity', 'entity_name',
                                        'mention', 'predicate', 'relationship', 'support', 'conflict', 'proposal']) as t;

-- Knowledge: written by the admitting functions, never deleted by them.
grant select, insert on memory, passage, occurrence, hold_out, entity, entity_name, mention, predicate, support, conflict,
  memory_version, relationship to rem_ingest, rem_approve;
grant update (superseded_at, superseded_by) on memory_version, relationship to rem_ingest, rem_approve;
grant update (closed_at, closed_by) on hold_out to rem_approve;
grant update (held_graph, screen_overridden) on memory to rem_approve;
grant update (status, closed_at, closed_by) on conflict to rem_approve;
grant select on memory, passage, occurrence, hold_out, entity, entity_name, mention, predicate, support, conflict,
  memory_version, relationship to rem_proposal, rem_recall;

-- Proposals: captured by one function, decided by another.
grant select, insert on proposal to rem_proposal;
-- A capture that meets its own stale twin expires it.
grant update (status, decided_at) on proposal to rem_proposal;
grant select on proposal to rem_approve;
grant update (status, body, pending_key, content_sha, pii, screen, scores, conflict_memory_id, conflict_version, edited_at,
  edited_by, decided_at, decided_by, decision, memory_id) on proposal to rem_approve;
grant select on proposal to rem_sweep;
grant update (status, decided_at, warned_at) on proposal to rem_sweep;

-- Erasure.
grant select, delete on memory, memory_version, passage, occurrence, hold_out, entity, entity_name, mention,
  predicate, relationship, support, conflict, proposal to rem_purge;
grant update (canonical) on entity_name to rem_purge;
grant update (scores, conflict_memory_id, conflict_version) on proposal to rem_purge;
grant select on legal_hold, space, principal, signing_key, idempotency to rem_purge;
grant update (generation) on space to rem_purge;
grant update (state, body, request_hash) on idempotency to rem_purge;
-- A hold that was released goes with its memory (its reason is free text); one that stands can never be deleted.
grant delete on legal_hold to rem_purge;
create policy released_only on legal_hold as restrictive for delete to rem_purge using (released_at is not null);
grant select, insert on tombstone to rem_purge;

-- Administration.
grant select on tenant, principal, credential, signing_key, space to rem_admin;
grant update (settings) on tenant to rem_admin;
grant insert on principal, credential, signing_key, space to rem_admin;
grant update (active, capabilities, team_grant, name) on principal to rem_admin;

-- Every function that creates or decides.
grant select, insert, delete on idempotency to rem_ingest, rem_proposal, rem_approve, rem_purge, rem_admin;
grant update (state, status, body, refs, token, lease_until) on idempotency
  to rem_ingest, rem_proposal, rem_approve, rem_admin;
grant update (status, refs, token, lease_until) on idempotency to rem_purge;
grant insert on outbox to rem_ingest, rem_proposal, rem_approve, rem_purge, rem_admin, rem_sweep, rem_audit;
grant select, insert on nonce to rem_purge, rem_admin;
grant select on principal to rem_ingest, rem_proposal, rem_approve, rem_recall, rem_audit, rem_system, rem_sweep;

-- Reading the chain.
grant select on audit_event, audit_head to rem_audit;
grant select, insert on audit_checkpoint to rem_audit;
grant select on tombstone to rem_audit;

-- Outbox delivery and the janitor.
grant select on outbox to rem_outbox;
grant update (claimed_until, attempts, delivered_at) on outbox to rem_outbox;
grant select, delete on idempotency, nonce, outbox to rem_sweep;

-- Functions owned by rem_definer. --------------------------------------------------------------------------
create function resolve_principal(p_issuer text, p_subject text)
returns table (tenant_id uuid, principal_id uuid, kind text, capabilities text[], team_grant text, active boolean,
               team_space uuid, private_space uuid, settings jsonb)
language sql stable security definer set search_path = public, pg_temp
as $$
  select p.tenant_id, p.principal_id, p.kind, p.capabilities, p.team_grant, p.active,
         (select s.space_id from space s where s.tenant_id = p.tenant_id and s.kind = 'team_shared'),
         (select s.space_id from space s where s.tenant_id = p.tenant_id and s.owner_id = p.principal_id),
         t.settings
  from credential c
  join principal p on p.tenant_id = c.tenant_id and p.principal_id = c.principal_id
  join tenant t on t.tenant_id = c.tenant_id
  where c.issuer = p_issuer and c.subject = p_subject
$$;

create function list_tenants()
returns table (tenant_id uuid, settings jsonb)
language sql stable security definer set search_path = public, pg_temp
as $$ select t.tenant_id, t.settings from tenant t order by 1 $$;

grant create on schema public to rem_definer;
alter function resolve_principal(text, text) owner to rem_definer;
alter function list_tenants() owner to rem_definer;
alter function audit_append_many(jsonb) owner to rem_definer;
alter function audit_append_many(jsonb) security definer set search_path = public, pg_temp;
revoke create on schema public from rem_definer;

grant select on tenant, principal, credential, space to rem_definer;
create policy definer_reads on tenant for select to rem_definer using (true);
create policy definer_reads on principal for select to rem_definer using (true);
create policy definer_reads on credential for select to rem_definer using (true);
create policy definer_reads on space for select to rem_definer using (true);
-- The chain is appended through audit_append_many alone, and never updated or deleted by anybody.
grant select, insert on audit_event to rem_definer;
grant select, insert, update on audit_head to rem_definer;
do $$ begin
  execute format('revoke update, delete, truncate on audit_event from %I', current_user);
  execute format('revoke delete, truncate on audit_head from %I', current_user);
end $$;

revoke execute on function resolve_principal(text, text), list_tenants(),
  audit_append(uuid, text, text, text, text), audit_append_many(jsonb) from public;
grant execute on function audit_append(uuid, text, text, text, text) to rem_definer;
grant execute on function resolve_principal(text, text)
  to rem_ingest, rem_proposal, rem_approve, rem_recall, rem_purge, rem_audit, rem_admin, rem_system;
grant execute on function list_tenants() to rem_sweep, rem_outbox, rem_audit;
grant select on schema_migration to rem_system;
-- The bootstrap writes the first audit row of a tenant.
do $$ begin
  execute format('grant execute on function audit_append_many(jsonb), list_tenants() to %I', current_user);
end $$;
grant execute on function audit_append_many(jsonb)
  to rem_ingest, rem_proposal, rem_approve, rem_recall, rem_purge, rem_audit, rem_admin, rem_sweep;
