-- A conflict whose memory leaves goes on with another that says the same.
grant update (memory_id, other_id) on conflict to rem_curate, rem_purge;
