-- Who retracted a version: what a reviewer takes back, its owner does not bring back.
alter table memory_version add column retracted_by uuid;
grant update (retracted_by) on memory_version to rem_curate;
