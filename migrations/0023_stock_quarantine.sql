-- Quarantine of stock after a restore or a failover: a voucher that is free here may have been sold on the lost timeline.
ALTER TABLE chunks ADD COLUMN quarantined boolean NOT NULL DEFAULT false;

-- Identity of the server and the tables that the service last wrote to. A restored dump has other oids, a point-in-time recovery
-- and a promoted standby have another timeline, and another cluster has another system identifier.
CREATE TABLE continuity (
    only_row          boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    system_identifier bigint NOT NULL,
    timeline          bigint NOT NULL,
    database_oid      bigint NOT NULL,
    table_oid         bigint NOT NULL, -- of allocations
    quarantined_at    timestamptz, -- null: no stock is quarantined
    quarantine_reason text,
    compared_at       timestamptz, -- with a list of the vouchers that were sold
    last_code_id      bigint, -- the highest code at the quarantine: ids above it name other codes on the lost timeline
    CHECK ((quarantined_at IS NULL) = (quarantine_reason IS NULL)),
    CHECK ((quarantined_at IS NULL) = (last_code_id IS NULL))
);
