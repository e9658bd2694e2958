-- The functions of remember answer for principals: 0007 made these two anew, after 0006.
grant execute on function resolve_principal(text, text), rate_take(text, text)
  to rem_remember, rem_remember_prepare, rem_remember_check, rem_remember_commit;

-- A long erasure names attempts too.
alter table erasure_item drop constraint erasure_item_kind_check,
  add constraint erasure_item_kind_check check (kind in ('memory', 'proposal', 'job', 'occurrence', 'attempt'));
