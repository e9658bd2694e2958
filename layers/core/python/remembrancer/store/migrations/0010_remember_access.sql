-- The functions of remember answer for principals: 0007 made these two anew, after 0006.
grant execute on function resolve_principal(text, text), rate_take(text, text)
  to rem_remember, rem_remember_prepare, rem_remember_check, rem_remember_commit;
