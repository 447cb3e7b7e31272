-- The tables of the peer: the same in shape as those of a voucher service, as one transaction per order wants them.
-- Locks are taken in one order everywhere: vouchers, then the key, then the wallet, which everybody wants, last.

CREATE TABLE partners (
    partner_id uuid PRIMARY KEY,
    name       text NOT NULL
);

-- Keys and secrets are random and long: a plain SHA-256 of each is all that is kept.
CREATE TABLE credentials (
    key_hash    bytea PRIMARY KEY CHECK (length(key_hash) = 32),
    secret_hash bytea NOT NULL CHECK (length(secret_hash) = 32),
    partner_id  uuid NOT NULL REFERENCES partners
);

CREATE TABLE skus (
    sku_id       integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    product_id   text NOT NULL,
    denomination bigint NOT NULL CHECK (denomination > 0),
    currency     text NOT NULL,
    UNIQUE (product_id, denomination)
);

-- The codes are apart: no order ever reads or updates them.
CREATE TABLE codes (
    code_id    bigint PRIMARY KEY,
    nonce      bytea NOT NULL,
    ciphertext bytea NOT NULL
);
CREATE SEQUENCE stock_ids AS bigint;

-- A voucher in stock, narrow because each sale writes it anew. Room on each page keeps the new version beside the old
-- one, and a vacuum that comes early keeps the way to the first free voucher short.
CREATE TABLE vouchers (
    stock_id bigint PRIMARY KEY,
    sku_id   integer NOT NULL,
    code_id  bigint NOT NULL,
    expiry   date NOT NULL,
    order_id uuid
) WITH (
    fillfactor = 50,
    autovacuum_vacuum_scale_factor = 0.01,
    autovacuum_vacuum_cost_delay = 0
);
CREATE INDEX vouchers_free ON vouchers (sku_id, expiry, stock_id) WHERE order_id IS NULL;

-- Who has a voucher: the primary key sells it once.
CREATE TABLE allocations (
    stock_id   bigint PRIMARY KEY,
    voucher_id uuid NOT NULL,
    partner_id uuid NOT NULL,
    order_id   uuid NOT NULL,
    line       smallint NOT NULL,
    expiry     date NOT NULL
);
CREATE INDEX allocations_of_order ON allocations (partner_id, order_id);

CREATE TABLE orders (
    partner_id uuid NOT NULL,
    order_id   uuid NOT NULL,
    status     text NOT NULL,
    currency   text NOT NULL,
    total      bigint NOT NULL CHECK (total > 0),
    reference  text,
    metadata   text,
    lines      jsonb NOT NULL,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (partner_id, order_id)
);

CREATE TABLE wallets (
    partner_id uuid NOT NULL,
    currency   text NOT NULL,
    balance    bigint NOT NULL CHECK (balance >= 0),
    sequence   bigint NOT NULL,
    updated_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (partner_id, currency)
) WITH (fillfactor = 20); -- written by every order: room for the next versions on the same page

CREATE TABLE ledger (
    partner_id     uuid NOT NULL,
    transaction_id uuid NOT NULL,
    currency       text NOT NULL,
    sequence       bigint NOT NULL,
    kind           text NOT NULL,
    amount         bigint NOT NULL,
    balance_after  bigint NOT NULL CHECK (balance_after >= 0),
    order_id       uuid,
    created_at     timestamptz NOT NULL,
    PRIMARY KEY (partner_id, transaction_id),
    UNIQUE (partner_id, currency, sequence)
);

-- What partners are told, numbered without a counter that orders would wait for: the service counts each partner's
-- events in the order of their commits, and this spares the peer that.
CREATE TABLE events (
    event_id   bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    partner_id uuid NOT NULL,
    order_id   uuid NOT NULL,
    body       text NOT NULL,
    created_at timestamptz NOT NULL
);

-- Answers under their keys; a key is a hash of partner, endpoint and text.
CREATE TABLE idempotency_keys (
    key         uuid PRIMARY KEY,
    fingerprint bytea NOT NULL CHECK (length(fingerprint) = 32),
    status      smallint NOT NULL,
    body        bytea NOT NULL,
    expires_at  timestamptz NOT NULL
);
