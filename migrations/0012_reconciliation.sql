-- Are our books and those of the vendors the same? What a vendor's books say of a day is kept as it was said last, beside
-- what came of comparing it with the codes that were bought.

-- When a code was bought, by this database's clock; null where it was imported. The day decides when a vendor's books
-- must have it.
ALTER TABLE codes ADD COLUMN bought_at timestamptz;

UPDATE codes AS c
   SET bought_at = p.requested_at
  FROM purchases AS p
 WHERE p.purchase_id = c.purchase_id;

CREATE INDEX codes_by_bought_at ON codes (bought_at) WHERE bought_at IS NOT NULL;
CREATE INDEX codes_by_reference ON codes (vendor_reference) WHERE vendor_reference IS NOT NULL;
CREATE INDEX purchases_of_vendor ON purchases (vendor, requested_at);

-- The books of a vendor. A reference names one voucher, never its code.
CREATE TABLE vendor_records (
    vendor       text NOT NULL,
    day          date NOT NULL,
    reference    text NOT NULL,
    purchase_id  uuid, -- null where the books do not say
    product_id   text NOT NULL,
    denomination bigint NOT NULL,
    currency     text NOT NULL,
    sold_at      timestamptz NOT NULL,
    PRIMARY KEY (vendor, day, reference)
);
CREATE INDEX vendor_records_by_reference ON vendor_records (vendor, reference, day);

-- What came of comparing a day with a vendor, and what came of trying to.
CREATE TABLE reconciliations (
    vendor             text NOT NULL,
    day                date NOT NULL,
    wanted_until       timestamptz,                        -- an operator has asked for it, and it is tried until then
    attempts           integer NOT NULL DEFAULT 0,         -- that failed, since the last one that did not
    next_at            timestamptz NOT NULL DEFAULT now(), -- not before; who tries puts it off
    last_word          text,                               -- why the last attempt failed
    source             text CHECK (source IN ('http', 'csv')),
    begun_at           timestamptz,                        -- before the books were asked for
    generated_at       timestamptz,
    ours_from          timestamptz,                        -- codes that were bought from here
    ours_to            timestamptz,                        -- to here must be in books that are known
    recorded           bigint,                             -- records of the day
    compared           bigint,                             -- vouchers that either side has
    matched            bigint,
    drifted            bigint,
    unmatched          bigint,
    orders_total       bigint,
    vouchers_allocated bigint,
    PRIMARY KEY (vendor, day),
    -- A result is there whole or not at all.
    CHECK (num_nulls(source, begun_at, generated_at, ours_from, ours_to, recorded, compared, matched, drifted, unmatched,
                     orders_total, vouchers_allocated) IN (0, 12))
);

-- The part of each order in a result: what its partner may see.
CREATE TABLE reconciled_orders (
    partner_id uuid NOT NULL,
    day        date NOT NULL,
    vendor     text NOT NULL,
    order_id   uuid NOT NULL,
    allocated  integer NOT NULL,
    matched    integer NOT NULL,
    drifted    integer NOT NULL,
    unmatched  integer NOT NULL,
    PRIMARY KEY (partner_id, day, vendor, order_id),
    FOREIGN KEY (vendor, day) REFERENCES reconciliations
);
CREATE INDEX reconciled_orders_of_result ON reconciled_orders (vendor, day);

-- Where both sides do not say the same. Its identity is what stands in the unique key; a result that finds it again keeps
-- what was said of it.
CREATE TABLE drifts (
    drift_id    uuid PRIMARY KEY,
    vendor      text NOT NULL,
    day         date NOT NULL,
    reference   text NOT NULL,
    kind        text NOT NULL CHECK (kind IN ('MISSING', 'UNKNOWN', 'DIFFERS', 'REPEATED')),
    twin        integer NOT NULL, -- counts from 1 those of one reference and kind: 1, where a vendor keeps its own rules
    partner_id  uuid, -- of the order that the voucher was bought for; null where there is none
    order_id    uuid,
    voucher_id  uuid, -- as that order holds it
    ours        jsonb,
    theirs      jsonb,
    detected_at timestamptz NOT NULL DEFAULT now(),
    resolution  text NOT NULL DEFAULT 'pending' CHECK (resolution IN ('pending', 'resolved', 'escalated')),
    reason      text,
    resolved_at timestamptz,
    UNIQUE (vendor, day, reference, kind, twin),
    FOREIGN KEY (vendor, day) REFERENCES reconciliations,
    CHECK ((partner_id IS NULL) = (order_id IS NULL)),
    CHECK ((resolution = 'pending') = (reason IS NULL AND resolved_at IS NULL)),
    CHECK ((kind = 'MISSING') = (theirs IS NULL)),
    CHECK ((kind = 'UNKNOWN') = (ours IS NULL))
);
CREATE INDEX drifts_of_partner ON drifts (partner_id, day) WHERE partner_id IS NOT NULL;
CREATE INDEX drifts_open ON drifts (vendor) WHERE resolution <> 'resolved';
