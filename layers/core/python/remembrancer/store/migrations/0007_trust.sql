-- Erasure by subject and by owner, with the fences that keep what was in flight from coming back.

-- The generations of a principal's spaces are read with the principal, at the start of a request; what is
-- written compares them again under the space's lock. In PL/pgSQL, which keeps the plan: an SQL function that is no
-- part of its caller's plan is planned at every call, and every transaction begins with this one.
drop function resolve_principal(text, text);
create function resolve_principal(p_issuer text, p_subject text)
returns table (tenant_id uuid, principal_id uuid, kind text, capabilities text[], team_grant text, active boolean,
               team_space uuid, team_generation bigint, private_space uuid, private_generation bigint, settings jsonb)
language plpgsql stable security definer rows 1 set search_path = public, pg_temp
as $$
#variable_conflict use_column
begin
  return query
  select p.tenant_id, p.principal_id, p.kind, p.capabilities, p.team_grant, p.active,
         team.space_id, team.generation, own.space_id, own.generation, t.settings
  from credential c
  join principal p on p.tenant_id = c.tenant_id and p.principal_id = c.principal_id
  join tenant t on t.tenant_id = c.tenant_id
  left join space team on team.tenant_id = p.tenant_id and team.kind = 'team_shared'
  left join space own on own.tenant_id = p.tenant_id and own.owner_id = p.principal_id
  where c.issuer = p_issuer and c.subject = p_subject;
end
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

select rem_isolate('legal_order');
grant select, insert on legal_order to rem_purge;
grant update (released_at, released_by, release_reason) on legal_order to rem_purge;
grant insert on legal_hold to rem_purge;
grant update (released_at, released_by) on legal_hold to rem_purge;

-- Rates and quotas -----------------------------------------------------------------------------------------
-- A bucket of tokens for each principal, and one for the tenant under the nil UUID: of requests, and of bytes of
-- text in a day. Not logged: after a crash every bucket is full.
create unlogged table rate_bucket (
  tenant_id uuid not null,
  principal_id uuid not null,
  what text not null check (what in ('requests', 'bytes', 'passages')),
  tokens double precision not null,
  refilled_at timestamptz not null,
  alerted_at timestamptz,
  primary key (tenant_id, principal_id, what)
) with (fillfactor = 50);
select rem_isolate('rate_bucket');
grant select, insert, update on rate_bucket to rem_definer;
grant insert on outbox to rem_definer;

-- An alert of that kind about a principal, or about the tenant, at most one in ten minutes; its bucket exists.
create function rate_alert(p_tenant uuid, p_principal uuid, p_what text) returns void
language plpgsql as $$
begin
  update rate_bucket b set alerted_at = clock_timestamp()
    where b.tenant_id = p_tenant and b.principal_id = p_principal and b.what = p_what
      and (b.alerted_at is null or b.alerted_at < clock_timestamp() - interval '10 minutes');
  if found then
    insert into outbox (tenant_id, delivery_id, kind, target, created_at)
      values (p_tenant, gen_random_uuid(), case p_what when 'requests' then 'rate_limited' else 'quota_exceeded' end,
              case when p_principal = '00000000-0000-0000-0000-000000000000' then p_tenant::text
                   else 'prin_' || replace(p_principal::text, '-', '') end,
              clock_timestamp());
  end if;
end
$$;

-- Takes so many tokens; 0, or the seconds until there are as many. More than a bucket holds cost a full one.
create function rate_bucket_take(
  p_tenant uuid, p_principal uuid, p_what text, p_rate double precision, p_burst double precision, p_cost double precision
) returns int language plpgsql as $$
declare
  v_cost constant double precision := least(p_cost, p_burst);
  v_tokens double precision;
begin
  -- Twice: the first bucket of a principal may be made by another request in between.
  for attempt in 1..2 loop
    update rate_bucket b
      set tokens = least(p_burst, b.tokens + p_rate * greatest(0, extract(epoch from clock_timestamp() - b.refilled_at)))
                   - v_cost,
          refilled_at = clock_timestamp()
      where b.tenant_id = p_tenant and b.principal_id = p_principal and b.what = p_what
        and least(p_burst, b.tokens + p_rate * greatest(0, extract(epoch from clock_timestamp() - b.refilled_at))) >= v_cost;
    if found then
      return 0;
    end if;
    insert into rate_bucket values (p_tenant, p_principal, p_what, p_burst - v_cost, clock_timestamp(), null)
      on conflict do nothing;
    if found then
      return 0;
    end if;
  end loop;
  perform rate_alert(p_tenant, p_principal, p_what);
  select least(p_burst, b.tokens + p_rate * greatest(0, extract(epoch from clock_timestamp() - b.refilled_at)))
    into v_tokens from rate_bucket b
    where b.tenant_id = p_tenant and b.principal_id = p_principal and b.what = p_what;
  return greatest(1, ceil((v_cost - v_tokens) / p_rate));
end
$$;

-- For one request of this credential: 0, the seconds to wait, or null for a credential that nobody has. One
-- statement in a transaction of its own, so that no bucket stays locked while a request works.
create function rate_take(p_issuer text, p_subject text) returns int
language plpgsql security definer set search_path = public, pg_temp
as $$
declare
  v_tenant uuid;
  v_principal uuid;
  v_settings jsonb;
  v_wait int;
begin
  select c.tenant_id, c.principal_id, t.settings into v_tenant, v_principal, v_settings
    from credential c join tenant t on t.tenant_id = c.tenant_id
    where c.issuer = p_issuer and c.subject = p_subject;
  if not found then
    return null;
  end if;
  perform set_config('rem.tenant', v_tenant::text, true), set_config('synchronous_commit', 'off', true);
  -- The defaults are those of domain/tenant_settings.py; a test compares them.
  v_wait := rate_bucket_take(v_tenant, v_principal, 'requests', coalesce((v_settings ->> 'principal_rate')::float8, 100),
                             coalesce((v_settings ->> 'principal_burst')::float8, 1000), 1);
  if v_wait = 0 then
    v_wait := rate_bucket_take(v_tenant, '00000000-0000-0000-0000-000000000000', 'requests',
                               coalesce((v_settings ->> 'tenant_rate')::float8, 1000),
                               coalesce((v_settings ->> 'tenant_burst')::float8, 10000), 1);
  end if;
  return v_wait;
end
$$;

-- For one request with so many bytes of text: the seconds to wait (0: none) and which quota says so. What a tenant
-- stores is as the statistics counted it last: no write counts anything itself.
create function quota_take(p_issuer text, p_subject text, p_bytes bigint, out wait int, out quota text)
language plpgsql security definer set search_path = public, pg_temp
as $$
declare
  v_nil constant uuid := '00000000-0000-0000-0000-000000000000';
  v_tenant uuid;
  v_principal uuid;
  v_settings jsonb;
  v_daily double precision;
begin
  wait := 0;
  select c.tenant_id, c.principal_id, t.settings into v_tenant, v_principal, v_settings
    from credential c join tenant t on t.tenant_id = c.tenant_id
    where c.issuer = p_issuer and c.subject = p_subject;
  if not found then
    return;
  end if;
  perform set_config('rem.tenant', v_tenant::text, true), set_config('synchronous_commit', 'off', true);
  if (select coalesce(sum(s.stored), 0) from space_stats s where s.tenant_id = v_tenant)
     >= coalesce((v_settings ->> 'tenant_passages')::float8, 20000000) then
    insert into rate_bucket values (v_tenant, v_nil, 'passages', 0, clock_timestamp(), null) on conflict do nothing;
    perform rate_alert(v_tenant, v_nil, 'passages');
    wait := 86400;
    quota := 'tenant_passages';
    return;
  end if;
  v_daily := coalesce((v_settings ->> 'principal_daily_bytes')::float8, 500000000);
  wait := rate_bucket_take(v_tenant, v_principal, 'bytes', v_daily / 86400, v_daily, p_bytes);
  quota := 'principal_daily_bytes';
  if wait = 0 then
    v_daily := coalesce((v_settings ->> 'tenant_daily_bytes')::float8, 5000000000);
    wait := rate_bucket_take(v_tenant, v_nil, 'bytes', v_daily / 86400, v_daily, p_bytes);
    quota := 'tenant_daily_bytes';
  end if;
end
$$;
grant create on schema public to rem_definer;
alter function rate_take(text, text) owner to rem_definer;
alter function quota_take(text, text, bigint) owner to rem_definer;
revoke create on schema public from rem_definer;
revoke execute on function rate_take(text, text), quota_take(text, text, bigint), rate_alert(uuid, uuid, text),
  rate_bucket_take(uuid, uuid, text, double precision, double precision, double precision) from public;
grant execute on function rate_alert(uuid, uuid, text),
  rate_bucket_take(uuid, uuid, text, double precision, double precision, double precision) to rem_definer;
grant execute on function rate_take(text, text)
  to rem_ingest, rem_proposal, rem_approve, rem_recall, rem_purge, rem_audit, rem_admin, rem_system,
     rem_curate, rem_report, rem_job;
grant execute on function quota_take(text, text, bigint) to rem_ingest, rem_proposal, rem_approve, rem_remember;
grant select (tenant_id, stored) on space_stats to rem_definer;
