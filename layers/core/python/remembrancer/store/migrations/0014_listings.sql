-- Which tombstones and legal holds lie outside the database already, for the day that an older one is restored
-- (flows/listing.py). A mark a row and no position: rows become visible in another order than that of their ids.
alter table tombstone add column listed boolean not null default false;
create index tombstone_unlisted on tombstone (tenant_id, tombstone_id) where not listed;
-- As what it was listed: an order that is released after that is listed again.
alter table legal_order add column listed text check (listed in ('placed', 'released'));
create index legal_order_unlisted on legal_order (tenant_id, hold_id)
  where listed is null or (listed = 'placed' and released_at is not null);

select rem_role('rem_listing');
grant select on tombstone, legal_order to rem_listing;
grant select (tenant_id, hold_id, memory_id) on legal_hold to rem_listing;
grant update (listed) on tombstone, legal_order to rem_listing;
grant execute on function list_tenants() to rem_listing;

-- A restored database is told of orders that were placed by people whom it does not know.
alter table legal_order drop constraint legal_order_tenant_id_placed_by_fkey;
