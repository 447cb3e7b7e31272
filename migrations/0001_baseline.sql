-- The schema of version 0.2.0. Released: never edited (CONTRIBUTING.md, "Schema changes").
--
-- The key of every table that a partner owns begins with partner_id, and stock is keyed by SKU: both can be sharded later. Money
-- is bigint minor units. Timestamps that decide come from this database's clock. Columns and tables without a comment hold what
-- the API field of the same name describes.
--
-- All writers lock in one order, each kind sorted by its key:
--   lanes, idempotency_keys, orders, payouts, wallets, chunks, allocations, codes (blind index), feeds
--   webhooks, webhook_progress, deliveries

-- Deployment, nodes and lanes ------------------------------------------------------------------------------------------------

-- The environment of this database. The service of the other environment rejects it.
CREATE TABLE deployment (
    only_row    boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    environment text NOT NULL CHECK (environment IN ('sandbox', 'production')),
    created_at  timestamptz NOT NULL DEFAULT now()
);

-- Installed SQL functions with the SHA-256 of their source files.
CREATE TABLE functions (
    name   text PRIMARY KEY,
    digest bytea NOT NULL
);

-- Service processes that write to this database. Each start takes the next incarnation, which fences off an earlier process of
-- the same node. Another node may claim this node's chunks only after the lease has expired.
CREATE TABLE nodes (
    node        text PRIMARY KEY,
    incarnation bigint NOT NULL,
    lease_until timestamptz NOT NULL
);

-- The fence of each lane: a batch is written only under the generation it was sent with, and leaves its number, from which
-- recovery reads whether it was committed.
CREATE TABLE lanes (
    node       text NOT NULL,
    lane       smallint NOT NULL,
    generation bigint NOT NULL,
    batch      bigint NOT NULL,
    PRIMARY KEY (node, lane)
) WITH (fillfactor = 20); -- updated by every batch: room for the next version on the same page

-- Partners and credentials ---------------------------------------------------------------------------------------------------

CREATE TABLE partners (
    partner_id          uuid PRIMARY KEY,
    name                text NOT NULL,
    allowlist           text[] NOT NULL,
    limits              jsonb NOT NULL DEFAULT '{}',
    suspended           boolean NOT NULL DEFAULT false,
    approval_rule       jsonb,
    catalogue           jsonb,
    cancel_window_s     integer NOT NULL DEFAULT 86400 CHECK (cancel_window_s >= 0),
    certified_at        timestamptz,
    agreement_signed_at timestamptz,
    created_at          timestamptz NOT NULL DEFAULT now(),
    updated_at          timestamptz NOT NULL DEFAULT now()
);

-- Keys and secrets are random and long, so a plain SHA-256 of each suffices, and nothing else of them is stored.
--
-- Rotation by the partner: an unused successor is revoked when the same credential asks again, because then the response that
-- contained it was lost. The first use is recorded only for credentials that came from a rotation.
CREATE TABLE credentials (
    credential_id uuid PRIMARY KEY,
    partner_id    uuid NOT NULL REFERENCES partners,
    key_hash      bytea NOT NULL UNIQUE CHECK (length(key_hash) = 32),
    secret_hash   bytea NOT NULL CHECK (length(secret_hash) = 32),
    allowlist     text[],
    not_before    timestamptz NOT NULL DEFAULT now(),
    not_after     timestamptz,
    revoked_at    timestamptz,
    rotated_from  uuid REFERENCES credentials,
    rotated_at    timestamptz,
    first_used_at timestamptz,
    CONSTRAINT first_use_of_rotated CHECK (first_used_at IS NULL OR rotated_from IS NOT NULL)
);
CREATE INDEX credentials_of_partner ON credentials (partner_id);
CREATE INDEX credentials_rotated_from ON credentials (rotated_from) WHERE rotated_from IS NOT NULL;

-- What the sandbox observed of a partner, as far as its certification needs it: ids and hashes, never a body, a key, a signature
-- or a code. The service deletes the oldest beyond some hundred rows per partner and check.
CREATE TABLE certification_observations (
    partner_id     uuid NOT NULL,
    check_name     text NOT NULL,
    observation_id bigint GENERATED ALWAYS AS IDENTITY,
    at             timestamptz NOT NULL,
    observation    jsonb NOT NULL,
    PRIMARY KEY (partner_id, check_name, observation_id)
);
-- Nodes poll the newest of all partners each second.
CREATE INDEX certification_observations_by_time ON certification_observations (at);

-- Catalogue and vendors ------------------------------------------------------------------------------------------------------

CREATE TABLE categories (
    category_id text PRIMARY KEY,
    name        text NOT NULL,
    parent_id   text REFERENCES categories
);

CREATE TABLE products (
    product_id        text PRIMARY KEY,
    name              text NOT NULL,
    brand             text NOT NULL,
    category_id       text NOT NULL REFERENCES categories,
    vendor            text NOT NULL,
    currency          text NOT NULL,
    countries         text[] NOT NULL,
    denominations     bigint[] NOT NULL,
    range_min         bigint,
    range_max         bigint,
    range_step        bigint CHECK (range_step > 0),
    expiry_policy     jsonb NOT NULL,
    redemption        jsonb NOT NULL,
    route             text NOT NULL CHECK (route IN ('stock', 'vendor')),
    approval          text NOT NULL CHECK (approval IN ('always', 'rule')),
    returnable        boolean NOT NULL,
    min_validity_days integer NOT NULL CHECK (min_validity_days >= 0),
    low_stock_at      integer NOT NULL CHECK (low_stock_at >= 0),
    discontinued      boolean NOT NULL,
    updated_at        timestamptz NOT NULL DEFAULT now()
);

-- The credential is encrypted under a data key, like codes, and is sent to the vendor alone.
CREATE TABLE vendors (
    vendor_id   text PRIMARY KEY,
    adapter     text NOT NULL CHECK (adapter IN ('mock', 'http', 'manual')),
    url         text,
    key_id      integer,
    nonce       bytea CHECK (length(nonce) = 12),
    ciphertext  bytea,
    concurrency integer NOT NULL CHECK (concurrency > 0),
    updated_at  timestamptz NOT NULL DEFAULT now(),
    -- Only an adapter that calls a vendor has a URL and a credential.
    CHECK ((adapter = 'http') = (url IS NOT NULL)),
    CHECK ((adapter = 'http') = (key_id IS NOT NULL)),
    CHECK (num_nulls(key_id, nonce, ciphertext) IN (0, 3))
);

-- Codes and stock ------------------------------------------------------------------------------------------------------------

-- Data keys, wrapped by the master key.
CREATE TABLE data_keys (
    key_id     integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    purpose    text NOT NULL CHECK (purpose IN ('codes', 'blind_index')),
    wrapped    bytea NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now()
);
CREATE UNIQUE INDEX one_blind_index_key ON data_keys (purpose) WHERE purpose = 'blind_index';

-- Encrypted codes. No order updates this table. The blind index makes a code and pin of a brand unique permanently.
-- No foreign keys: they would cost an import a third of its rate, and `vouchsafe verify` checks the same references.
CREATE TABLE codes (
    code_id          bigint PRIMARY KEY,
    product_id       text NOT NULL,
    denomination     bigint NOT NULL,
    blind_index      bytea NOT NULL UNIQUE CHECK (length(blind_index) = 32),
    key_id           integer NOT NULL,
    nonce            bytea NOT NULL CHECK (length(nonce) = 12),
    ciphertext       bytea NOT NULL,
    purchase_id      uuid, -- null: imported
    vendor_reference text, -- the vendor's id of the voucher
    bought_at        timestamptz -- null: imported. Its day decides when the vendor's records must contain the voucher
);
CREATE SEQUENCE code_ids AS bigint;
CREATE INDEX codes_of_purchase ON codes (purchase_id) WHERE purchase_id IS NOT NULL;
CREATE INDEX codes_by_bought_at ON codes (bought_at) WHERE bought_at IS NOT NULL;
CREATE INDEX codes_by_reference ON codes (vendor_reference) WHERE vendor_reference IS NOT NULL;

-- Nodes claim stock by the chunk: about 500 vouchers of one SKU with neighbouring expiry, whose rows are neighbours too. An
-- emptied chunk never has vouchers to sell again. The stock rows of a chunk never change, so one expiry pass a day suffices.
CREATE TABLE chunks (
    chunk_id       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    product_id     text NOT NULL REFERENCES products,
    denomination   bigint NOT NULL,
    first_expiry   date, -- of the voucher that expires first; null: none expires
    last_expiry    date, -- null: at least one never expires
    first_stock_id bigint NOT NULL,
    last_stock_id  bigint NOT NULL CHECK (last_stock_id >= first_stock_id),
    node           text,
    incarnation    bigint,
    emptied        boolean NOT NULL DEFAULT false,
    reservation_id uuid,
    expired_before date -- free vouchers that expired before this day are withdrawn; null: the expiry job has not seen the chunk
);
CREATE INDEX chunks_to_claim ON chunks (product_id, denomination, first_expiry NULLS LAST, chunk_id) WHERE NOT emptied;
CREATE INDEX chunks_of_reservation ON chunks (reservation_id) WHERE reservation_id IS NOT NULL;
CREATE INDEX chunks_to_expire ON chunks (first_expiry, chunk_id) WHERE NOT emptied;
COMMENT ON COLUMN chunks.reservation_id IS
    'Reservation that keeps the chunk from the shelves: the purchase whose order gets it, or an id of its own for orders that wait for the SKU.';

-- Vouchers in stock. Never updated: allocations says who holds a voucher. A returned voucher gets a new row.
CREATE TABLE stock (
    stock_id bigint PRIMARY KEY,
    chunk_id bigint NOT NULL,
    code_id  bigint NOT NULL,
    expiry   date -- the last valid day; null: never expires
);
CREATE SEQUENCE stock_ids AS bigint;

-- Holders of vouchers. At most one row per stock row, ever: the primary key prevents selling a voucher twice.
CREATE TABLE allocations (
    stock_id           bigint PRIMARY KEY,
    voucher_id         uuid, -- the public id; null if withdrawn
    partner_id         uuid,
    order_id           uuid,
    line               smallint,
    withdrawal_reason  text CHECK (withdrawal_reason IN ('void', 'expired')), -- withdrawn from sale without an order
    first_retrieved_at timestamptz,
    returned_at        timestamptz, -- the order no longer shows the voucher; this row stays allocated, the code has a new stock row
    CHECK ((order_id IS NULL) = (withdrawal_reason IS NOT NULL)),
    CHECK ((order_id IS NULL) = (voucher_id IS NULL AND partner_id IS NULL AND line IS NULL))
);
CREATE INDEX allocations_of_order ON allocations (partner_id, order_id) WHERE order_id IS NOT NULL;

-- Orders ---------------------------------------------------------------------------------------------------------------------

-- lines and timeline cost each batch: lines is JSON that the database does not parse, and an order that stands as it was placed
-- has no timeline (see order_timeline_v1).
CREATE TABLE orders (
    partner_id         uuid NOT NULL,
    order_id           uuid NOT NULL,
    status             text NOT NULL CHECK (
        status IN ('PENDING', 'PROCESSING', 'PARTIALLY_DELIVERED', 'DELIVERED', 'CANCELLED', 'REFUNDED')
    ),
    currency           text NOT NULL,
    total              bigint NOT NULL CHECK (total > 0),
    refunded           bigint NOT NULL DEFAULT 0 CHECK (refunded >= 0 AND refunded <= total),
    fulfilled_from     text CHECK (fulfilled_from IN ('cache', 'vendor', 'mixed')),
    pending_reason     text CHECK (pending_reason IN ('VENDOR', 'APPROVAL')),
    closed             boolean NOT NULL,
    last_sequence      integer NOT NULL, -- of the order's events
    reference          text,
    metadata           text, -- a JSON object, exactly as the partner sent it
    lines              text NOT NULL,
    timeline           jsonb,
    codes_retrieved_at timestamptz,
    created_at         timestamptz NOT NULL,
    updated_at         timestamptz NOT NULL,
    PRIMARY KEY (partner_id, order_id)
) WITH (fillfactor = 90);
-- An order id begins with its created_at, so a period is a range of the primary key, and so is the list of all orders. Most
-- orders are delivered and are found on that range; an order that is delivered at once without a reference is in no other index.
CREATE INDEX orders_by_status ON orders (partner_id, status, order_id) WHERE status <> 'DELIVERED';
CREATE INDEX orders_by_reference ON orders (partner_id, reference, order_id) WHERE reference IS NOT NULL;
-- Orders that wait for vouchers, oldest first.
CREATE INDEX orders_for_vendors ON orders (order_id) WHERE pending_reason = 'VENDOR' AND NOT closed;

-- Responses stored under idempotency keys. The key is a hash of partner, endpoint and key text: short, and evenly distributed.
CREATE TABLE idempotency_keys (
    key         uuid PRIMARY KEY,
    fingerprint bytea NOT NULL CHECK (length(fingerprint) = 32),
    status      smallint NOT NULL,
    body        bytea NOT NULL,
    expires_at  timestamptz NOT NULL -- infinity: never
);
CREATE INDEX idempotency_keys_by_age ON idempotency_keys USING brin (expires_at);

-- Purchases from vendors for order lines. The id is the idempotency key at the vendor: it is committed before the request is
-- sent, and the service asks for an unknown outcome under it until it is known.
CREATE TABLE purchases (
    purchase_id      uuid PRIMARY KEY,
    partner_id       uuid NOT NULL,
    order_id         uuid NOT NULL,
    line             smallint NOT NULL,
    vendor           text NOT NULL,
    product_id       text NOT NULL,
    denomination     bigint NOT NULL,
    currency         text NOT NULL,
    quantity         integer NOT NULL CHECK (quantity > 0),
    expiry_policy    jsonb NOT NULL,
    requested_at     timestamptz NOT NULL,
    sent             boolean NOT NULL DEFAULT false, -- the vendor may have received the request
    ended            boolean NOT NULL DEFAULT false, -- no more vouchers will come
    last_message     text,                           -- why not all vouchers were delivered at the last response
    next_at          timestamptz NOT NULL DEFAULT now(),
    claimed_by       text,                           -- the node that is calling the vendor
    claimed_until    timestamptz,
    last_response    text,
    last_response_at timestamptz,
    sold             integer NOT NULL DEFAULT 0,     -- vouchers that the vendor has sold under this id
    quarantined      text[] NOT NULL DEFAULT '{}',   -- the vendor's ids of those that were sold before; never stored as codes
    UNIQUE (partner_id, order_id, line)
);
CREATE INDEX purchases_due ON purchases (vendor, next_at) WHERE NOT ended;
CREATE INDEX purchases_of_order ON purchases (order_id);
CREATE INDEX purchases_of_vendor ON purchases (vendor, requested_at);
-- Recent out-of-stock responses, and later sales of the same SKU that supersede them.
CREATE INDEX purchases_out_of_stock ON purchases (last_response_at) WHERE last_response = 'OUT_OF_STOCK';
CREATE INDEX purchases_sold ON purchases (product_id, denomination, last_response_at) WHERE sold > 0;

-- Money ----------------------------------------------------------------------------------------------------------------------

CREATE TABLE wallets (
    partner_id      uuid NOT NULL,
    currency        text NOT NULL,
    balance         bigint NOT NULL DEFAULT 0 CHECK (balance >= 0),
    pending_orders  bigint NOT NULL DEFAULT 0 CHECK (pending_orders >= 0),
    pending_payouts bigint NOT NULL DEFAULT 0 CHECK (pending_payouts >= 0),
    sequence        bigint NOT NULL DEFAULT 0, -- of the newest ledger entry
    updated_at      timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (partner_id, currency)
) WITH (fillfactor = 50); -- updated by every batch

-- The entry that pays an order has the order's id, so the primary key finds it and there is at most one.
CREATE TABLE ledger (
    partner_id     uuid NOT NULL,
    transaction_id uuid NOT NULL,
    currency       text NOT NULL,
    sequence       bigint NOT NULL, -- from 1 per wallet, without gaps
    kind           text NOT NULL CHECK (
        kind IN ('TOP_UP', 'DEBIT', 'REFUND', 'PAYOUT', 'PAYOUT_REVERSAL', 'ADJUSTMENT')
    ),
    amount         bigint NOT NULL,
    balance_after  bigint NOT NULL CHECK (balance_after >= 0),
    order_id       uuid,
    payout_id      uuid,
    reference      text,
    created_at     timestamptz NOT NULL,
    PRIMARY KEY (partner_id, transaction_id),
    UNIQUE (partner_id, currency, sequence),
    CONSTRAINT debit_of_order CHECK (kind <> 'DEBIT' OR (order_id IS NOT NULL AND transaction_id = order_id))
);
-- Nearly all entries are debits: orders pay for neither index.
CREATE INDEX ledger_by_kind ON ledger (partner_id, currency, kind, sequence) WHERE kind <> 'DEBIT';
CREATE INDEX ledger_of_order ON ledger (partner_id, order_id) WHERE kind <> 'DEBIT';

-- Payouts. The money left the wallet when the payout was accepted.
CREATE TABLE payouts (
    partner_id         uuid NOT NULL,
    payout_id          uuid NOT NULL,
    status             text NOT NULL CHECK (status IN ('PENDING', 'PAID', 'REJECTED', 'FAILED')),
    currency           text NOT NULL,
    amount             bigint NOT NULL CHECK (amount > 0),
    destination        text NOT NULL, -- a JSON object, masked
    destination_sealed bytea NOT NULL,
    reference          text,
    timeline           jsonb NOT NULL,
    created_at         timestamptz NOT NULL,
    updated_at         timestamptz NOT NULL,
    PRIMARY KEY (partner_id, payout_id)
);
CREATE INDEX payouts_by_id ON payouts (payout_id); -- for operators

-- Reconciliation -------------------------------------------------------------------------------------------------------------

-- A vendor's sales records, as the vendor reported them last. A reference identifies one voucher and is never its code.
CREATE TABLE vendor_records (
    vendor       text NOT NULL,
    day          date NOT NULL,
    reference    text NOT NULL,
    purchase_id  uuid, -- null if the records do not contain it
    product_id   text NOT NULL,
    denomination bigint NOT NULL,
    currency     text NOT NULL,
    sold_at      timestamptz NOT NULL,
    PRIMARY KEY (vendor, day, reference)
);
CREATE INDEX vendor_records_by_reference ON vendor_records (vendor, reference, day);

-- Comparison of a vendor's records of a day with the codes that were bought: schedule and result.
CREATE TABLE reconciliations (
    vendor             text NOT NULL,
    day                date NOT NULL,
    requested_until    timestamptz,                        -- an operator has requested it, and it is retried until then
    attempts           integer NOT NULL DEFAULT 0,         -- failures since the last success
    next_at            timestamptz NOT NULL DEFAULT now(), -- earliest next attempt; an attempt postpones it
    last_error         text,
    source             text CHECK (source IN ('http', 'csv')),
    started_at         timestamptz,                        -- before the records were requested
    generated_at       timestamptz,
    bought_from        timestamptz,                        -- codes bought from here
    bought_to          timestamptz,                        -- to here must be in records that are known
    recorded           bigint,                             -- records of the day
    compared           bigint,                             -- vouchers on either side
    matched            bigint,
    drifted            bigint,
    unmatched          bigint,
    orders_total       bigint,
    vouchers_allocated bigint,
    PRIMARY KEY (vendor, day),
    -- A result is complete or absent.
    CHECK (num_nulls(source, started_at, generated_at, bought_from, bought_to, recorded, compared, matched, drifted, unmatched,
                     orders_total, vouchers_allocated) IN (0, 12))
);

-- The part of each order in a result, which its partner may see.
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

-- Differences between both sides. The unique key is a drift's identity: a later result that finds it again keeps its resolution.
CREATE TABLE drifts (
    drift_id    uuid PRIMARY KEY,
    vendor      text NOT NULL,
    day         date NOT NULL,
    reference   text NOT NULL,
    kind        text NOT NULL CHECK (kind IN ('MISSING', 'UNKNOWN', 'DIFFERS', 'REPEATED')),
    occurrence  integer NOT NULL, -- from 1 per reference and kind; above 1 only if the vendor violates its protocol
    partner_id  uuid, -- of the order that the voucher was bought for; null if there is none
    order_id    uuid,
    voucher_id  uuid, -- the order's id of the voucher
    ours        jsonb,
    theirs      jsonb,
    detected_at timestamptz NOT NULL DEFAULT now(),
    resolution  text NOT NULL DEFAULT 'pending' CHECK (resolution IN ('pending', 'resolved', 'escalated')),
    reason      text,
    resolved_at timestamptz,
    UNIQUE (vendor, day, reference, kind, occurrence),
    FOREIGN KEY (vendor, day) REFERENCES reconciliations,
    CHECK ((partner_id IS NULL) = (order_id IS NULL)),
    CHECK ((resolution = 'pending') = (reason IS NULL AND resolved_at IS NULL)),
    CHECK ((kind = 'MISSING') = (theirs IS NULL)),
    CHECK ((kind = 'UNKNOWN') = (ours IS NULL))
);
CREATE INDEX drifts_of_partner ON drifts (partner_id, day) WHERE partner_id IS NOT NULL;
CREATE INDEX drifts_open ON drifts (vendor) WHERE resolution <> 'resolved';

-- Events and webhooks --------------------------------------------------------------------------------------------------------

-- A row holds the events of one commit about one order. Their numbers are number .. number + count - 1 of the partner, in commit
-- order and without gaps.
CREATE TABLE events (
    partner_id     uuid NOT NULL,
    number         bigint NOT NULL,
    count          integer NOT NULL CHECK (count > 0),
    order_id       uuid NOT NULL,
    first_sequence integer NOT NULL,
    body           text NOT NULL,
    created_at     timestamptz NOT NULL,
    PRIMARY KEY (partner_id, number)
);

-- The counter of each partner's event numbers. Locked last and until the commit, which puts the numbers in commit order.
CREATE TABLE feeds (
    partner_id  uuid PRIMARY KEY,
    last_number bigint NOT NULL
) WITH (fillfactor = 50);

-- Webhook endpoints. The secret is encrypted instead of hashed, because signing needs it.
CREATE TABLE webhooks (
    partner_id      uuid NOT NULL,
    webhook_id      uuid NOT NULL,
    url             text NOT NULL,
    events          text[], -- null: all types, including future ones
    description     text,
    enabled         boolean NOT NULL,
    disabled_reason text CHECK (disabled_reason IN ('PARTNER', 'GONE')), -- by the partner, or because of a 410
    disabled_at     timestamptz,
    secret          bytea NOT NULL,
    previous_secret bytea, -- signs too, until previous_until
    previous_until  timestamptz,
    created_at      timestamptz NOT NULL DEFAULT now(),
    updated_at      timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (partner_id, webhook_id),
    UNIQUE (partner_id, url),
    CHECK (enabled = (disabled_reason IS NULL) AND enabled = (disabled_at IS NULL)),
    CHECK ((previous_secret IS NULL) = (previous_until IS NULL))
);
CREATE UNIQUE INDEX webhooks_by_id ON webhooks (webhook_id); -- for operators

-- Progress of an endpoint: every event of its partner up to the cursor is delivered, not subscribed to, or has a row in
-- deliveries. The lease holder delivers and writes under the lease's number; a change of the endpoint takes the lease away.
CREATE TABLE webhook_progress (
    partner_id    uuid NOT NULL,
    webhook_id    uuid NOT NULL,
    cursor        bigint NOT NULL,
    failures      integer NOT NULL DEFAULT 0, -- in a row
    backoff_step  integer NOT NULL DEFAULT 0,
    failing_since timestamptz,
    due_at        timestamptz, -- the next attempt after a failure
    delivered     bigint NOT NULL DEFAULT 0, -- accepted attempts, in total
    refused       bigint NOT NULL DEFAULT 0, -- other attempts, in total
    lease         bigint NOT NULL DEFAULT 0,
    leased_by     text,
    incarnation   bigint,
    leased_until  timestamptz,
    -- Number of the last flush under this lease. A flush that is repeated because its outcome is unknown counts its attempts once.
    last_flush    bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (partner_id, webhook_id)
) WITH (fillfactor = 50); -- updated each second while events flow

-- Deliveries that failed, that wait behind a failed one of their order, or that are replayed. A delivery that succeeds at once
-- has no row.
CREATE TABLE deliveries (
    partner_id  uuid NOT NULL,
    webhook_id  uuid NOT NULL,
    number      bigint NOT NULL, -- the partner's number of the event
    delivery_id uuid NOT NULL,
    order_id    uuid NOT NULL,
    state       text NOT NULL CHECK (state IN ('WAITING', 'DELIVERED', 'FAILED')),
    attempts    integer NOT NULL, -- failures since the start or the last replay
    next_at     timestamptz NOT NULL, -- infinity: waits for an earlier event of its order
    give_up_at  timestamptz NOT NULL,
    log         jsonb NOT NULL DEFAULT '[]', -- attempts: status, time, the first bytes of the response
    event_at    timestamptz NOT NULL, -- the event's commit
    updated_at  timestamptz NOT NULL DEFAULT now(),
    replays     integer NOT NULL DEFAULT 0, -- the result of an attempt ends only the replay that the attempt belongs to
    PRIMARY KEY (partner_id, webhook_id, number)
);
CREATE UNIQUE INDEX deliveries_by_id ON deliveries (delivery_id); -- for operators
CREATE INDEX deliveries_due ON deliveries (partner_id, webhook_id, next_at) WHERE state = 'WAITING';
CREATE INDEX deliveries_of_order ON deliveries (partner_id, webhook_id, order_id, number) WHERE state = 'WAITING';
CREATE INDEX deliveries_over ON deliveries (updated_at) WHERE state <> 'WAITING';

-- Audit log ------------------------------------------------------------------------------------------------------------------

-- Actions of operators, of partners on their access, and each retrieval of codes (`codes.retrieve`, committed before the codes
-- are decrypted). Never codes, secrets or bodies.
CREATE TABLE audit_log (
    audit_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at       timestamptz NOT NULL DEFAULT now(),
    operator text NOT NULL,
    action   text NOT NULL,
    subject  text NOT NULL,
    before   jsonb,
    after    jsonb,
    trace_id text
);
CREATE INDEX audit_log_of_operator ON audit_log (operator, audit_id);
CREATE INDEX audit_log_of_action ON audit_log (action, audit_id);
CREATE INDEX audit_log_of_subject ON audit_log (subject, audit_id); -- also finds the retrievals of an order
CREATE INDEX audit_log_by_time ON audit_log (at, audit_id);
-- Changes that each node polls for, newest first, among many code retrievals and bookings.
CREATE INDEX audit_log_of_changes ON audit_log (audit_id) WHERE action ~ '^(partner|credential|product)\.';

-- Hash chain over the audit log: a checkpoint is the hash of the previous checkpoint and of the entries it lists. Checkpoints are
-- written after the entries commit, so that writers of entries do not wait. A checkpoint lists its entries one by one, because
-- entries do not become visible in the order of their ids.
CREATE TABLE audit_checkpoints (
    number  bigint PRIMARY KEY CHECK (number > 0),
    at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    entries bigint[] NOT NULL CHECK (cardinality(entries) > 0),
    hash    bytea NOT NULL CHECK (length(hash) = 32)
);
CREATE INDEX audit_checkpoints_by_newest ON audit_checkpoints ((entries[cardinality(entries)]));

-- Append-only tables ---------------------------------------------------------------------------------------------------------

CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'rows of % are never changed or removed', TG_TABLE_NAME;
END
$$;
CREATE TRIGGER audit_log_only_grows BEFORE UPDATE OR DELETE OR TRUNCATE ON audit_log
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER audit_checkpoints_only_grow BEFORE UPDATE OR DELETE OR TRUNCATE ON audit_checkpoints
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER ledger_only_grows BEFORE UPDATE OR DELETE OR TRUNCATE ON ledger
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER events_are_frozen BEFORE UPDATE ON events
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
