-- What erasure, holds and their speed need more.

-- Whom a further submission says that the text is about: the memory's own row may name others, or nobody. What
-- comes through remember says so in `submission`.
alter table occurrence add column data_subjects text[] not null default '{}';

-- The foreign key looks for every hold of an erased memory, also for those that were released.
drop index legal_hold_active;
create index legal_hold_by_memory on legal_hold (tenant_id, memory_id);

-- The planner's samples (0013): vectors, from which texts can be guessed, and plain digests of short texts are no
-- better kept than the texts.
alter table occurrence alter column data_subjects set statistics 0;
do $$
declare
  c record;
begin
  for c in
    select k.relname as t, a.attname as col
    from pg_class k join pg_attribute a on a.attrelid = k.oid and a.attnum > 0 and not a.attisdropped
    where k.relnamespace = 'public'::regnamespace and k.relkind in ('r', 'p') and not k.relispartition
      and (a.atttypid in ('halfvec'::regtype, 'vector'::regtype)
           or (a.atttypid in ('bytea'::regtype, 'bytea[]'::regtype)
               and k.relname in ('memory', 'proposal', 'evidence_source', 'idempotency', 'attempt', 'attempt_vector',
                                 'checkpoint')))
  loop
    execute format('alter table %I alter column %I set statistics 0', c.t, c.col);
  end loop;
end $$;

-- Array operators are not leakproof, so row level security would have every attempt and every kept answer of the tenant
-- read for each batch of an erasure (as in 0004). These look past the policies, for the transaction's tenant alone.
-- An id at a time: of a thousand at once the planner expects so much that it reads the table.
create index attempt_shas on attempt using gin (content_shas);
create function rem_attempts_with(p_refs uuid[], p_shas bytea[]) returns table (attempt_id uuid)
language sql stable security definer rows 100 set search_path = public, pg_temp
as $$
  select a.attempt_id from unnest(p_refs) as r (id) cross join lateral (
    select a.attempt_id from attempt a where a.tenant_id = rem_tenant() and a.refs @> array[r.id] offset 0) a
  union
  select a.attempt_id from unnest(p_shas) as s (sha) cross join lateral (
    select a.attempt_id from attempt a where a.tenant_id = rem_tenant() and a.content_shas @> array[s.sha] offset 0) a
$$;
create function rem_answers_with(p_refs uuid[]) returns table (principal_id uuid, operation text, key text)
language sql stable security definer rows 100 set search_path = public, pg_temp
as $$
  select distinct i.principal_id, i.operation, i.key from unnest(p_refs) as r (id) cross join lateral (
    select i.principal_id, i.operation, i.key from idempotency i
    where i.tenant_id = rem_tenant() and i.refs @> array[r.id] offset 0) i
$$;
grant create on schema public to rem_definer;
alter function rem_attempts_with(uuid[], bytea[]) owner to rem_definer;
alter function rem_answers_with(uuid[]) owner to rem_definer;
revoke create on schema public from rem_definer;
grant select (refs, content_shas) on attempt to rem_definer;
grant select (tenant_id, principal_id, operation, key, refs) on idempotency to rem_definer;
create policy definer_reads on idempotency for select to rem_definer using (true);
revoke execute on function rem_attempts_with(uuid[], bytea[]), rem_answers_with(uuid[]) from public;
grant execute on function rem_attempts_with(uuid[], bytea[]), rem_answers_with(uuid[]) to rem_purge;

-- What a capture became, when it is decided between two batches of an erasure.
create index memory_by_proposal on memory (tenant_id, proposal_id) where proposal_id is not null;

-- A principal's credentials are rotated and its keys revoked by a signed request.
grant delete on credential to rem_admin;
grant update (revoked_at) on signing_key to rem_admin;
