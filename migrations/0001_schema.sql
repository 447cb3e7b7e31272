-- The tables. The key of every table that a partner owns begins with partner_id, stock is keyed by SKU: both can be
-- spread over databases later. Money is bigint minor units. Times that decide are this database's clock.
--
-- Locks are taken in one order everywhere, each kind sorted by its key:
--   lanes, idempotency_keys, orders, wallets, chunks, allocations, codes (blind index), feeds.

-- Which environment this database belongs to; the other one refuses it.
CREATE TABLE deployment (
    only_row    boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    environment text NOT NULL CHECK (environment IN ('sandbox', 'production')),
    created_at  timestamptz NOT NULL DEFAULT now()
);

-- A service process that writes here. A start takes the next incarnation, which shuts out what its predecessor left
-- running; a stranger may take its chunks only when the lease has run out.
CREATE TABLE nodes (
    node        text PRIMARY KEY,
    incarnation bigint NOT NULL,
    lease_until timestamptz NOT NULL
);

-- The fence of each lane: a batch is written only under the generation it was sent with, and leaves its number.
CREATE TABLE lanes (
    node       text NOT NULL,
    lane       smallint NOT NULL,
    generation bigint NOT NULL,
    batch      bigint NOT NULL,
    PRIMARY KEY (node, lane)
) WITH (fillfactor = 20); -- updated by every batch: room for the next version on the same page

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

-- Keys and secrets are random and long: a plain SHA-256 of each is all that is kept.
CREATE TABLE credentials (
    credential_id uuid PRIMARY KEY,
    partner_id    uuid NOT NULL REFERENCES partners,
    key_hash      bytea NOT NULL UNIQUE CHECK (length(key_hash) = 32),
    secret_hash   bytea NOT NULL CHECK (length(secret_hash) = 32),
    allowlist     text[],
    not_before    timestamptz NOT NULL DEFAULT now(),
    not_after     timestamptz,
    revoked_at    timestamptz
);
CREATE INDEX credentials_of_partner ON credentials (partner_id);

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

-- Data keys, wrapped by the master key.
CREATE TABLE data_keys (
    key_id     integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    purpose    text NOT NULL CHECK (purpose IN ('codes', 'blind_index')),
    wrapped    bytea NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now()
);
CREATE UNIQUE INDEX one_blind_index_key ON data_keys (purpose) WHERE purpose = 'blind_index';

-- The codes. No order ever updates this table. The blind index makes a code and pin of a brand unique for ever.
-- No foreign keys: they would cost an import a third of its rate, and `verify` looks for what they would have kept.
CREATE TABLE codes (
    code_id      bigint PRIMARY KEY,
    product_id   text NOT NULL,
    denomination bigint NOT NULL,
    blind_index  bytea NOT NULL UNIQUE CHECK (length(blind_index) = 32),
    key_id       integer NOT NULL,
    nonce        bytea NOT NULL CHECK (length(nonce) = 12),
    ciphertext   bytea NOT NULL
);
CREATE SEQUENCE code_ids AS bigint;

-- Stock is claimed by the chunk: some 500 vouchers of one SKU with neighbouring expiry, whose rows are neighbours too.
-- An emptied chunk has nothing left to sell, ever.
CREATE TABLE chunks (
    chunk_id       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    product_id     text NOT NULL REFERENCES products,
    denomination   bigint NOT NULL,
    first_expiry   date, -- of the voucher that expires first; null: none of them ever does
    last_expiry    date, -- null: some never do
    first_stock_id bigint NOT NULL,
    last_stock_id  bigint NOT NULL CHECK (last_stock_id >= first_stock_id),
    node           text,
    incarnation    bigint,
    emptied        boolean NOT NULL DEFAULT false
);
CREATE INDEX chunks_to_claim ON chunks (product_id, denomination, first_expiry NULLS LAST, chunk_id) WHERE NOT emptied;

-- A voucher in stock. Never updated: who holds it is in allocations. A voucher that comes back gets a new row.
CREATE TABLE stock (
    stock_id bigint PRIMARY KEY,
    chunk_id bigint NOT NULL,
    code_id  bigint NOT NULL,
    expiry   date -- the last valid day; null: never expires
);
CREATE SEQUENCE stock_ids AS bigint;

-- Who has a voucher. One row a stock row, ever: that is what sells a voucher once.
CREATE TABLE allocations (
    stock_id           bigint PRIMARY KEY,
    voucher_id         uuid, -- the public id; null where nobody bought it
    partner_id         uuid,
    order_id           uuid,
    line               smallint,
    taken_out          text CHECK (taken_out IN ('void', 'expired')), -- out of sale without an order
    first_retrieved_at timestamptz,
    CHECK ((order_id IS NULL) = (taken_out IS NOT NULL)),
    CHECK ((order_id IS NULL) = (voucher_id IS NULL AND partner_id IS NULL AND line IS NULL))
);
CREATE INDEX allocations_of_order ON allocations (partner_id, order_id) WHERE order_id IS NOT NULL;

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
    metadata           text, -- a JSON object, as the partner spelled it
    lines              jsonb NOT NULL,
    timeline           jsonb NOT NULL,
    codes_retrieved_at timestamptz,
    created_at         timestamptz NOT NULL,
    updated_at         timestamptz NOT NULL,
    PRIMARY KEY (partner_id, order_id)
) WITH (fillfactor = 90);

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

CREATE TABLE ledger (
    partner_id     uuid NOT NULL,
    transaction_id uuid NOT NULL,
    currency       text NOT NULL,
    sequence       bigint NOT NULL,
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
    UNIQUE (partner_id, currency, sequence)
);

-- Answers under their keys. The key is a hash of partner, endpoint and key text: short, and spread evenly.
CREATE TABLE idempotency_keys (
    key         uuid PRIMARY KEY,
    fingerprint bytea NOT NULL CHECK (length(fingerprint) = 32),
    status      smallint NOT NULL,
    body        bytea NOT NULL,
    expires_at  timestamptz NOT NULL -- infinity: kept for ever
);
CREATE INDEX idempotency_keys_by_age ON idempotency_keys USING brin (expires_at);

-- What partners are told. A row holds the events of one commit about one order; their numbers are
-- number .. number + count - 1 of the partner, in the order of the commits and without a gap.
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

-- The counter behind those numbers. Locked last, and until the commit: that is what puts them in order.
CREATE TABLE feeds (
    partner_id  uuid PRIMARY KEY,
    last_number bigint NOT NULL
) WITH (fillfactor = 50);

-- Who did what as an operator. Never codes, secrets or bodies.
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

-- Who read the codes of an order. Written before they are decrypted.
CREATE TABLE code_retrievals (
    retrieval_id  bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at            timestamptz NOT NULL DEFAULT now(),
    partner_id    uuid NOT NULL,
    order_id      uuid NOT NULL,
    credential_id uuid NOT NULL,
    address       text NOT NULL,
    vouchers      integer NOT NULL,
    trace_id      text
);
CREATE INDEX code_retrievals_of_order ON code_retrievals (partner_id, order_id);

-- The trails only grow.
CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'rows of % are never changed or removed', TG_TABLE_NAME;
END
$$;
CREATE TRIGGER audit_log_only_grows BEFORE UPDATE OR DELETE OR TRUNCATE ON audit_log
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER code_retrievals_only_grow BEFORE UPDATE OR DELETE OR TRUNCATE ON code_retrievals
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER ledger_only_grows BEFORE UPDATE OR DELETE OR TRUNCATE ON ledger
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER events_are_frozen BEFORE UPDATE ON events
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
