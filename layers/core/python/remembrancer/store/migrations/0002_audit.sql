-- The audit chain: one per tenant, each row bound to the row before it. domain/audit.py states the byte
-- layout and verifies; a test holds the two together. Row level security and grants: 0003_access.sql.

-- One row a tenant: the last sequence number and hash, and the lock that keeps the chain from forking.
create table audit_head (
  tenant_id uuid primary key,
  seq bigint not null check (seq >= 0),
  hash bytea not null check (octet_length(hash) = 32)
);

create table audit_event (
  tenant_id uuid not null,
  seq bigint not null check (seq > 0),
  at timestamptz not null,
  actor_id uuid,
  actor_kind text not null,
  action text not null,
  target text,
  detail text not null,
  prev_hash bytea not null check (octet_length(prev_hash) = 32),
  hash bytea not null check (octet_length(hash) = 32),
  primary key (tenant_id, seq)
);

-- A field as the hash sees it: 4-byte big-endian length and the bytes; null is ff ff ff ff.
create function audit_field(p_value bytea) returns bytea language sql immutable parallel safe
  return case
    when p_value is null then '\xffffffff'::bytea
    else int4send(octet_length(p_value)) || p_value
  end;

create function audit_hash(
  p_tenant uuid, p_seq bigint, p_at timestamptz, p_actor uuid, p_actor_kind text, p_action text,
  p_target text, p_detail text, p_prev_hash bytea
) returns bytea language sql stable parallel safe
  return sha256(
    audit_field(convert_to('remembrancer-audit-1', 'UTF8'))
    || audit_field(convert_to(p_tenant::text, 'UTF8'))
    || audit_field(convert_to(p_seq::text, 'UTF8'))
    || audit_field(convert_to((extract(epoch from p_at) * 1000000)::bigint::text, 'UTF8'))
    || audit_field(convert_to(p_actor::text, 'UTF8'))
    || audit_field(convert_to(p_actor_kind, 'UTF8'))
    || audit_field(convert_to(p_action, 'UTF8'))
    || audit_field(convert_to(p_target, 'UTF8'))
    || audit_field(convert_to(p_detail, 'UTF8'))
    || audit_field(p_prev_hash)
  );

-- Appends one event to the chain of the transaction's tenant and returns its number. The LAST statement
-- before commit: the head stays locked until then, and every other writer of the tenant waits for it.
create function audit_append(
  p_actor uuid, p_actor_kind text, p_action text, p_target text, p_detail text
) returns bigint language plpgsql as $$
declare
  v_tenant constant uuid := rem_tenant();
  v_at timestamptz;
  v_seq bigint;
  v_prev bytea;
  v_hash bytea;
begin
  select seq, hash into v_seq, v_prev from audit_head where tenant_id = v_tenant for update;
  if not found then
    insert into audit_head (tenant_id, seq, hash) values (v_tenant, 0, decode(repeat('00', 32), 'hex'))
      on conflict (tenant_id) do nothing;
    select seq, hash into strict v_seq, v_prev from audit_head where tenant_id = v_tenant for update;
  end if;
  v_seq := v_seq + 1;
  -- After the lock, so that times follow the order of the chain.
  v_at := clock_timestamp();
  v_hash := audit_hash(v_tenant, v_seq, v_at, p_actor, p_actor_kind, p_action, p_target, p_detail, v_prev);
  insert into audit_event
      (tenant_id, seq, at, actor_id, actor_kind, action, target, detail, prev_hash, hash)
    values (v_tenant, v_seq, v_at, p_actor, p_actor_kind, p_action, p_target, p_detail, v_prev, v_hash);
  update audit_head set seq = v_seq, hash = v_hash where tenant_id = v_tenant;
  return v_seq;
end
$$;

-- Appends the objects {actor, actor_kind, action, target, detail} of an array in its order (detail is text);
-- returns the last number, null for an empty array.
create function audit_append_many(p_events jsonb) returns bigint language plpgsql as $$
declare
  v_event jsonb;
  v_seq bigint;
begin
  for v_event in select value from jsonb_array_elements(p_events) with ordinality order by ordinality loop
    v_seq := audit_append(
      (v_event ->> 'actor')::uuid, v_event ->> 'actor_kind', v_event ->> 'action',
      v_event ->> 'target', v_event ->> 'detail'
    );
  end loop;
  return v_seq;
end
$$;
