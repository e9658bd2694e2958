-- A centroid is a mean of vectors: after an erasure it is computed again, however little was erased.
alter table centroid add column generation bigint not null default 0;
