-- A conflict whose memory leaves goes on with another that says the same.
grant update (memory_id, other_id) on conflict to rem_curate, rem_purge;
-- What had made way for a relationship holds again when nobody says that any more.
create index relationship_by_successor on relationship (tenant_id, superseded_by) where superseded_by is not null;
-- Erasure leaves what others say as if what it erases had never been said.
grant insert on relationship, support to rem_purge;
grant update (superseded_at, superseded_by) on relationship to rem_purge;
