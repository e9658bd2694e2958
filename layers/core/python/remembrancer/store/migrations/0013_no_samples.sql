-- The planner's samples of a column are copies of its values, in a catalog that no erasure reaches and that ANALYZE
-- keeps for a table that has become empty: none are made of what callers say, be it text, name or subject. What these
-- columns are compared by has an index that ends in few rows without an estimate.
do $$
declare
  c record;
begin
  for c in
    select k.relname as t, a.attname as col
    from pg_class k join pg_attribute a on a.attrelid = k.oid and a.attnum > 0 and not a.attisdropped
    where k.relnamespace = 'public'::regnamespace and k.relkind in ('r', 'p') and not k.relispartition
      and k.relname in ('memory', 'passage', 'occurrence', 'submission', 'evidence_source', 'entity_name', 'mention',
                        'predicate', 'predicate_alias', 'relationship', 'conflict', 'proposal', 'job', 'job_item',
                        'job_passage', 'idempotency', 'attempt', 'checkpoint', 'exchange')
      and a.atttypid in ('text'::regtype, 'text[]'::regtype, 'jsonb'::regtype)
      -- Words of our own.
      and a.attname not in ('domain', 'kind', 'origin', 'source_type', 'assertion_kind', 'admitted_by', 'language',
                            'contract', 'value_type', 'polarity', 'status', 'state', 'cardinality', 'authority',
                            'operation', 'issuer', 'correlation_id', 'failure', 'object_key', 'scopes', 'groups')
  loop
    execute format('alter table %I alter column %I set statistics 0', c.t, c.col);
  end loop;
end $$;
