-- Reviewers see that a private memory of somebody is held, and why, never its text: these columns alone leave
-- the row. A reviewer's own private rows come with their text from the tables.
create function rem_held_in_private(p_after uuid, p_limit int)
returns table (memory_id uuid, space_id uuid, owner_id uuid, created_at timestamptz, source text, pii boolean,
               held_for text[])
language sql stable security definer set search_path = public, pg_temp
as $$
  select m.memory_id, m.space_id, m.owner_id, m.created_at, m.source, m.pii, array_agg(h.reason order by h.opened_at)
  from memory m
  join hold_out h on h.tenant_id = m.tenant_id and h.memory_id = m.memory_id and h.closed_at is null
  where m.tenant_id = rem_tenant()
    and m.space_id <> all (rem_spaces())
    and (p_after is null or m.memory_id > p_after)
  group by m.tenant_id, m.memory_id
  having bool_and(h.reason <> 'rejected')
  order by m.memory_id
  limit p_limit
$$;

grant create on schema public to rem_definer;
alter function rem_held_in_private(uuid, int) owner to rem_definer;
revoke create on schema public from rem_definer;
revoke execute on function rem_held_in_private(uuid, int) from public;
grant execute on function rem_held_in_private(uuid, int) to rem_approve;
grant select (tenant_id, memory_id, space_id, owner_id, created_at, source, pii) on memory to rem_definer;
grant select (tenant_id, memory_id, reason, opened_at, closed_at) on hold_out to rem_definer;
