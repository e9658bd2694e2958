-- Which submission brought a name: an erasure takes the names of a submission whose text somebody else's memory keeps.
alter table mention add column occurrence_id uuid;
update mention t set occurrence_id = (
  select o.occurrence_id from occurrence o where o.tenant_id = t.tenant_id and o.memory_id = t.memory_id
  order by o.submitted_at, o.occurrence_id limit 1);
alter table mention alter column occurrence_id set not null, drop constraint mention_pkey,
  add primary key (tenant_id, memory_id, entity_id, name_key, occurrence_id);
