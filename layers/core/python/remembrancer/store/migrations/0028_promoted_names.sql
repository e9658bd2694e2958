-- An entity keeps a canonical name while it has any: when the memory that brought it is erased, another name takes its
-- place, also one that another entity bears (the one that was merged into it does). Two writers of one new name meet on
-- the lock of the name.
drop index entity_name_canonical;
