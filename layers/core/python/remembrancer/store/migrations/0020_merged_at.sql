-- When an entity became a part of another, and its names that other's: a view of what was known before has both.
alter table entity add column merged_at timestamptz;
alter table mention add column merged_at timestamptz;
grant update (merged_at) on entity to rem_curate;
-- The consistency report names entities that somebody can look at.
grant select on mention to rem_upkeep;
