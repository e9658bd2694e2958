-- What is staged may be records that the worker has yet to judge: it puts the cleaned text, or why there is none, in
-- place of what was sent.
grant update (body) on job_item to rem_job;
