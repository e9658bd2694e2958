-- What recall searches: passages in parts of their own, terms as numbers of their space, what follows what.

-- Where a memory stands in its source: the source as a number (an address of 2,000 characters does not fit an
-- index entry, and a function in a predicate would not pass row level security), and its place in it, by the
-- ordinal of a part or else by the time it was observed.
alter table memory
  add column source_key bigint generated always as (hashtextextended(source_uri, 0)) stored,
  add column sequence bigint generated always as (
    coalesce(ordinal::bigint, (extract(epoch from observed_at - timestamptz '1970-01-01 00:00:00+00') * 1000000)::bigint)
  ) stored;
create index memory_sequence on memory (tenant_id, space_id, source_key, sequence, memory_id)
  where source_key is not null and sequence is not null;
-- A small domain beside a large one is found, and searched exactly.
create index memory_by_domain on memory (tenant_id, space_id, domain);

-- Hash parts by space: an index of vectors is shared by the spaces of one part only, so a large space keeps
-- most of its own, and a plan starts at the tenant instead of filtering everybody's neighbours.
drop table passage;
create table passage (
  tenant_id uuid not null,
  passage_id uuid not null,
  memory_id uuid not null,
  space_id uuid not null,
  ordinal int not null,
  span_start int not null,
  span_end int not null,
  rendered text not null,
  language text not null,
  terms bigint[] not null, -- in the order of the text, then further handles (domain/terms.py)
  words int not null, -- how many of the terms are words of the text
  asks boolean not null, -- ends in a question
  dated boolean not null, -- names a time
  embedding halfvec(384) not null,
  contract text not null,
  primary key (tenant_id, space_id, passage_id),
  foreign key (tenant_id, memory_id) references memory on delete cascade
) partition by hash (space_id);
do $$
begin
  for part in 0..15 loop
    execute format('create table passage_%s partition of passage for values with (modulus 16, remainder %s)', part, part);
    -- The whole row stays in its page: vector and terms are read for every candidate.
    execute format('alter table passage_%s set (toast_tuple_target = 4080)', part);
  end loop;
end $$;
create index passage_by_memory on passage (tenant_id, memory_id);
create index passage_by_space on passage (tenant_id, space_id);
create index passage_terms on passage using gin (terms);
create index passage_embedding on passage using hnsw (embedding halfvec_cosine_ops);

-- A space has one tenant: without this the planner multiplies their shares and expects a handful of rows where
-- there are thousands.
create statistics memory_of_space (dependencies) on tenant_id, space_id from memory;
create statistics memory_version_of_space (dependencies) on tenant_id, space_id from memory_version;
do $$
begin
  for part in 0..15 loop
    execute format('create statistics passage_%s_of_space (dependencies) on tenant_id, space_id from passage_%s', part, part);
  end loop;
end $$;

-- How many passages of a space hold a term: of what is live, by the scheduled job alone (never by a write).
create table term_stats (
  tenant_id uuid not null,
  space_id uuid not null,
  term bigint not null,
  passages int not null,
  primary key (tenant_id, space_id, term),
  foreign key (tenant_id, space_id) references space
);
create table space_stats (
  tenant_id uuid not null,
  space_id uuid not null,
  stored int not null, -- passages of the space when this was computed, live or not: what staleness is told by
  passages int not null,
  words bigint not null,
  generation bigint not null,
  computed_at timestamptz not null,
  primary key (tenant_id, space_id),
  foreign key (tenant_id, space_id) references space
);

select rem_role('rem_statistics');
select rem_isolate(t), rem_by_space(t)
from unnest(array['passage', 'term_stats', 'space_stats'] || array(select 'passage_' || n from generate_series(0, 15) n)) as t;

grant select, insert on passage to rem_ingest, rem_approve;
grant select on passage to rem_proposal, rem_recall;
grant select, delete on passage to rem_purge;
grant select on term_stats, space_stats to rem_recall;

-- The job counts terms; it reads no text and no vector.
grant select (tenant_id, space_id, memory_id, terms, words) on passage to rem_statistics;
grant select (tenant_id, memory_id) on hold_out to rem_statistics;
grant select (closed_at) on hold_out to rem_statistics;
grant select (tenant_id, memory_id, superseded_at) on memory_version to rem_statistics;
grant select on space to rem_statistics;
grant select, insert, update, delete on term_stats, space_stats to rem_statistics;
grant execute on function list_tenants() to rem_statistics;

-- Array operators are not leakproof, so row level security would keep the term index from being used. This
-- function looks the terms up past the policies, for the tenant and the spaces of the transaction alone; the
-- caller joins the rows to `memory` under its policies. One space at a time: a plan of one part of the sixteen.
create function rem_passages_with(p_spaces uuid[], p_terms bigint[])
returns table (space_id uuid, passage_id uuid, memory_id uuid, terms bigint[], words int)
language plpgsql stable security definer rows 1000 set search_path = public, pg_temp
as $$
declare
  v_space uuid;
begin
  for v_space in select unnest(p_spaces) intersect select unnest(rem_spaces()) loop
    return query select p.space_id, p.passage_id, p.memory_id, p.terms, p.words from passage p
      where p.tenant_id = rem_tenant() and p.space_id = v_space and p.terms && p_terms;
  end loop;
end
$$;
-- Whether the terms hold these, one after the other.
create function rem_holds_phrase(p_terms bigint[], p_phrase bigint[]) returns boolean language sql immutable parallel safe
  return exists (select from unnest(array_positions(p_terms, p_phrase[1])) as found(at)
                 where p_terms[found.at : found.at + cardinality(p_phrase) - 1] = p_phrase);

grant create on schema public to rem_definer;
alter function rem_passages_with(uuid[], bigint[]) owner to rem_definer;
revoke create on schema public from rem_definer;
grant select (tenant_id, space_id, passage_id, memory_id, terms, words) on passage to rem_definer;
create policy definer_reads on passage for select to rem_definer using (true);
revoke execute on function rem_passages_with(uuid[], bigint[]) from public;
grant execute on function rem_passages_with(uuid[], bigint[]) to rem_recall;
