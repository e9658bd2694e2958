-- Everybody who has edited a proposal, instead of the last one: with four eyes none of them decides on it.
alter table proposal drop column edited_by, add column editors uuid[] not null default '{}';
grant update (editors) on proposal to rem_approve;
