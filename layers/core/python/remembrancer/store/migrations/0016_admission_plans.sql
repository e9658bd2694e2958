-- The statements of an admission, as functions: a function's plans are kept by the session, where a statement of a
-- client without prepared statements is planned anew each time, which under row level security took longer than
-- running it. They have no rights of their own: row level security and grants are those of whoever calls.

-- A plan is kept while the tables grow: with scans of whole tables off it is made of lookups from the start.

-- Who is visible is said in store/visibility.py; a test holds its predicate and these together.

-- For each vector the live memories of the space nearest to it. Up to `p_exact` passages all are compared.
create function memory_near(p_space uuid, p_contract text, p_vectors halfvec[], p_limit int, p_exact int,
  p_at timestamptz, p_retention jsonb, p_characters int)
returns table (place bigint, memory_id uuid, version int, content text, valid_from timestamptz, valid_to timestamptz,
  cosine double precision, related boolean)
language plpgsql set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
#variable_conflict use_column
declare
  v_tenant constant uuid := rem_tenant();
begin
  if (select count(*) from (select from passage where tenant_id = v_tenant and space_id = p_space limit p_exact + 1) p)
     > p_exact then
    return query select * from memory_near_indexed(p_space, p_contract, p_vectors, p_limit, p_at, p_retention,
                                                   p_characters);
    return;
  end if;
  return query
  with live as materialized (
    select l.*, p.embedding
    from passage p cross join lateral (
      select m.memory_id, v.version, v.valid_from, v.valid_to from memory m
      join memory_version v on v.tenant_id = m.tenant_id and v.memory_id = m.memory_id
      where m.tenant_id = p.tenant_id and m.memory_id = p.memory_id and v.memory_id = p.memory_id
        and v.superseded_at is null and (v.valid_from is null or v.valid_from <= p_at)
        and (v.valid_to is null or p_at < v.valid_to)
        and p_at < coalesce(v.expires_at, m.created_at + make_interval(days => (p_retention ->> m.kind)::int))
        and not exists (select from hold_out h where h.tenant_id = m.tenant_id and h.memory_id = m.memory_id
                        and h.closed_at is null)
      offset 0
    ) l
    where p.tenant_id = v_tenant and p.space_id = p_space and p.contract = p_contract
  ), near as (
    select c.place, x.* from unnest(p_vectors) with ordinality as c (vector, place)
    cross join lateral (
      select memory_id, version, valid_from, valid_to, 1 - (embedding <=> c.vector) as cosine
      from live order by embedding <=> c.vector limit p_limit
    ) x
  )
  select n.place, n.memory_id, n.version, m.content, n.valid_from, n.valid_to, n.cosine,
         exists (select from support s where s.tenant_id = v_tenant and s.memory_id = n.memory_id)
  from near n cross join lateral (
    select left(content, p_characters) as content from memory
    where tenant_id = v_tenant and memory_id = n.memory_id offset 0
  ) m;
end
$$;

-- The same by the index of vectors. Planned and run with sorting off, so that it is the index that gives the order,
-- whatever the planner knows of rows that one transaction has just brought. Memories are looked up passage by
-- passage (`offset 0` keeps that from being turned into a join).
create function memory_near_indexed(p_space uuid, p_contract text, p_vectors halfvec[], p_limit int, p_at timestamptz,
  p_retention jsonb, p_characters int)
returns table (place bigint, memory_id uuid, version int, content text, valid_from timestamptz, valid_to timestamptz,
  cosine double precision, related boolean)
language plpgsql set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_sort = off as $$
#variable_conflict use_column
declare
  v_tenant constant uuid := rem_tenant();
begin
  return query
  with near as (
    select c.place, x.* from unnest(p_vectors) with ordinality as c (vector, place)
    cross join lateral (
      select l.*, 1 - (p.embedding <=> c.vector) as cosine
      from passage p cross join lateral (
        select m.memory_id, v.version, v.valid_from, v.valid_to from memory m
        join memory_version v on v.tenant_id = m.tenant_id and v.memory_id = m.memory_id
        where m.tenant_id = p.tenant_id and m.memory_id = p.memory_id and v.memory_id = p.memory_id
          and v.superseded_at is null and (v.valid_from is null or v.valid_from <= p_at)
          and (v.valid_to is null or p_at < v.valid_to)
          and p_at < coalesce(v.expires_at, m.created_at + make_interval(days => (p_retention ->> m.kind)::int))
          and not exists (select from hold_out h where h.tenant_id = m.tenant_id and h.memory_id = m.memory_id
                          and h.closed_at is null)
        offset 0
      ) l
      where p.tenant_id = v_tenant and p.space_id = p_space and p.contract = p_contract
      order by p.embedding <=> c.vector limit p_limit
    ) x
  )
  select n.place, n.memory_id, n.version, m.content, n.valid_from, n.valid_to, n.cosine,
         exists (select from support s where s.tenant_id = v_tenant and s.memory_id = n.memory_id)
  from near n cross join lateral (
    select left(content, p_characters) as content from memory
    where tenant_id = v_tenant and memory_id = n.memory_id offset 0
  ) m;
end
$$;

-- By key, a live or held memory that has it. Succeeded, decayed, erased text is new.
create function memory_known(p_keys bytea[], p_at timestamptz, p_retention jsonb)
returns table (dedup_key bytea, memory_id uuid, version int, domain text, revision text, valid_from timestamptz,
               valid_to timestamptz, held boolean, kept_out boolean)
language plpgsql set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
#variable_conflict use_column
declare
  v_tenant constant uuid := rem_tenant();
begin
  return query
  select k.key, found.* from unnest(p_keys) as k (key)
  cross join lateral (
    select m.memory_id, v.version, m.domain, m.revision, v.valid_from, v.valid_to,
           exists (select from hold_out h where h.tenant_id = m.tenant_id and h.memory_id = m.memory_id
                   and h.closed_at is null) as held,
           exists (select from hold_out h where h.tenant_id = m.tenant_id and h.memory_id = m.memory_id
                   and h.closed_at is null and h.reason <> 'screen') as kept_out
    from memory m
    join memory_version v on v.tenant_id = m.tenant_id and v.memory_id = m.memory_id
                         and v.superseded_at is null and v.superseded_by is null
    where m.tenant_id = v_tenant and m.dedup_key = k.key and p_at <
      coalesce(v.expires_at, m.created_at + make_interval(days => (p_retention ->> m.kind)::int))
    offset 0
  ) found
  order by found.held desc, found.memory_id desc;
end
$$;

-- For each mean of a text's vectors the domain whose centroid is nearest.
create function centroid_near(p_space uuid, p_means vector[], p_contracts text[])
returns table (place bigint, domain text, cosine double precision)
language plpgsql set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
#variable_conflict use_column
declare
  v_tenant constant uuid := rem_tenant();
begin
  return query
  select t.place, n.domain, n.cosine
  from unnest(p_means, p_contracts) with ordinality as t (mean, contract, place)
  cross join lateral (
    select c.domain, 1 - (c.embedding <=> t.mean) as cosine from centroid c
    where c.tenant_id = v_tenant and c.space_id = p_space and c.contract = t.contract
    order by c.embedding <=> t.mean, c.domain limit 1
  ) n;
end
$$;

-- Memories with their first versions, passages, occurrences and hold-outs. Rows travel as JSON.
create function memory_insert(
  p_rows jsonb, p_passages jsonb, p_now timestamptz, p_by uuid, p_correlation text, p_submitted timestamptz)
returns void
language plpgsql as $$
declare
  v_tenant constant uuid := rem_tenant();
begin
  with r as materialized (
    select * from jsonb_to_recordset(p_rows) as r (
      memory_id uuid, space_id uuid, owner_id uuid, domain text, kind text, title text, content text, author text,
      origin text, source text, assertion_kind text, admitted_by text, approved_by uuid, proposal_id uuid,
      data_subjects text[], observed_at timestamptz, source_uri text, revision text, pii boolean, screen jsonb,
      screen_overridden boolean, held_graph jsonb, confidence float8, confidence_parts jsonb, dedup_key bytea,
      parent_id uuid, ordinal int, heading_path text, line_start int, line_end int, claimed jsonb,
      valid_from timestamptz, valid_to timestamptz, expires_at timestamptz, occurrence_id uuid, hold_out_id uuid)
  ), m as (
    insert into memory (tenant_id, memory_id, space_id, owner_id, domain, kind, title, content, author, origin, source,
      assertion_kind, admitted_by, approved_by, proposal_id, data_subjects, observed_at, source_uri, revision, pii,
      screen, screen_overridden, held_graph, confidence, confidence_parts, dedup_key, created_at, parent_id, ordinal,
      heading_path, line_start, line_end, claimed)
    select v_tenant, memory_id, space_id, owner_id, domain, kind, title, content, author, origin, source,
      assertion_kind, admitted_by, approved_by, proposal_id, data_subjects, observed_at, source_uri, revision, pii,
      screen, screen_overridden, held_graph, confidence, confidence_parts, dedup_key, p_now, parent_id, ordinal,
      heading_path, line_start, line_end, claimed
    from r
  ), v as (
    insert into memory_version (tenant_id, memory_id, space_id, version, valid_from, valid_to, created_at, expires_at)
    select v_tenant, memory_id, space_id, 1, valid_from, valid_to, p_now, expires_at from r
  ), o as (
    insert into occurrence (tenant_id, occurrence_id, memory_id, space_id, submitted_by, submitted_at, source,
      correlation_id, revision, ordinal, line_start, line_end)
    select v_tenant, occurrence_id, memory_id, space_id, owner_id, p_submitted, source, p_correlation, revision,
      ordinal, line_start, line_end
    from r
  ), h as (
    insert into hold_out (tenant_id, hold_out_id, memory_id, space_id, reason, opened_at, opened_by)
    select v_tenant, hold_out_id, memory_id, space_id, 'screen', p_now, p_by from r where hold_out_id is not null
  )
  insert into passage (tenant_id, passage_id, memory_id, space_id, ordinal, span_start, span_end, rendered, language,
    terms, words, asks, dated, embedding, contract)
  select v_tenant, passage_id, memory_id, space_id, ordinal, span_start, span_end, rendered, language, terms, words,
    asks, dated, vector::halfvec, contract
  from jsonb_to_recordset(p_passages) as p (
    passage_id uuid, memory_id uuid, space_id uuid, ordinal int, span_start int, span_end int, rendered text,
    language text, terms bigint[], words int, asks boolean, dated boolean, vector text, contract text);
end
$$;

revoke execute on function memory_near(uuid, text, halfvec[], int, int, timestamptz, jsonb, int),
  memory_near_indexed(uuid, text, halfvec[], int, timestamptz, jsonb, int), memory_known(bytea[], timestamptz, jsonb),
  centroid_near(uuid, vector[], text[]), memory_insert(jsonb, jsonb, timestamptz, uuid, text, timestamptz) from public;
grant execute on function memory_near(uuid, text, halfvec[], int, int, timestamptz, jsonb, int),
  memory_near_indexed(uuid, text, halfvec[], int, timestamptz, jsonb, int) to rem_ingest, rem_job, rem_approve, rem_proposal;
grant execute on function memory_known(bytea[], timestamptz, jsonb) to rem_ingest, rem_job, rem_approve;
grant execute on function centroid_near(uuid, vector[], text[]),
  memory_insert(jsonb, jsonb, timestamptz, uuid, text, timestamptz)
  to rem_ingest, rem_job, rem_approve, rem_remember_commit;
