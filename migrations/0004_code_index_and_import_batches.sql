-- Version 0.2.0 stores neither column; the service computes code_index for its rows.
--
-- code_index: keyed hash of brand and code without the PIN, which finds the same code with another PIN. A voucher that shares
-- its code with an earlier one has its blind index here, which differs from every code index. Null: not computed yet.
-- import_id: the batch of imported stock; null for purchases.
ALTER TABLE codes
    ADD COLUMN code_index bytea,
    ADD COLUMN import_id bigint;

-- Batches of imported stock. A repeated import of a batch continues it.
CREATE TABLE stock_imports (
    import_id  bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    vendor     text NOT NULL,
    batch      text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    UNIQUE (vendor, batch)
);

-- Counts of the vouchers of all orders that were settled on a day: in total, by partner, and by vendor and batch.
CREATE TABLE reconciled_days (
    day             date PRIMARY KEY,
    requested_until timestamptz, -- an operator has requested it, and it is retried until then
    started_at      timestamptz, -- null: requested, not counted yet
    generated_at    timestamptz,
    CHECK ((started_at IS NULL) = (generated_at IS NULL))
);
CREATE TABLE reconciled_partners (
    day                date NOT NULL,
    partner_id         uuid NOT NULL,
    orders_total       bigint NOT NULL,
    vouchers_allocated bigint NOT NULL,
    PRIMARY KEY (day, partner_id)
);
CREATE TABLE reconciled_batches (
    day       date NOT NULL,
    vendor    text NOT NULL,
    source    text NOT NULL CHECK (source IN ('purchase', 'import')),
    batch     text NOT NULL, -- empty: a purchase, or an import by version 0.2.0
    orders    bigint NOT NULL,
    vouchers  bigint NOT NULL,
    matched   bigint NOT NULL,
    drifted   bigint NOT NULL,
    unmatched bigint NOT NULL,
    PRIMARY KEY (day, vendor, source, batch),
    CHECK (matched + drifted + unmatched <= vouchers)
);
