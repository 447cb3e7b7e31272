-- Schema of the peer, designed for one transaction per order.
-- Lock order: vouchers, idempotency key, wallet. The wallet row is the most contended, so its lock comes last.

CREATE TABLE partners (
    partner_id uuid PRIMARY KEY,
    name       text NOT NULL
);

-- Voucher codes have a separate table because orders never read or update them.
CREATE TABLE codes (
    code_id    bigint PRIMARY KEY,
    nonce      bytea NOT NULL,
    ciphertext bytea NOT NULL
);
CREATE SEQUENCE stock_ids AS bigint;

-- Stock. The rows are narrow because each sale writes a new row version. The fill factor keeps updates HOT-eligible, and
-- early vacuums keep the index scan for the first free voucher short.
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

-- Sold vouchers. The primary key guarantees that a voucher is sold once.
CREATE TABLE allocations (
    stock_id   bigint PRIMARY KEY,
    voucher_id uuid NOT NULL,
    partner_id uuid NOT NULL,
    order_id   uuid NOT NULL,
    line       smallint NOT NULL,
    expiry     date NOT NULL,
    -- The first read of the code
    first_retrieved_at timestamptz
) WITH (fillfactor = 80);
CREATE INDEX allocations_of_order ON allocations (partner_id, order_id);

CREATE TABLE orders (
    partner_id uuid NOT NULL,
    order_id   uuid NOT NULL,
    status     text NOT NULL,
    currency   text NOT NULL,
    total      bigint NOT NULL CHECK (total > 0),
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
) WITH (fillfactor = 20); -- every order updates the row: leave space for its next versions on the same page

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

-- Partner events. An identity column numbers them, so orders do not contend for a counter. The service numbers the events
-- of each partner without gaps in commit order; the peer does less work here.
CREATE TABLE events (
    event_id   bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    partner_id uuid NOT NULL,
    order_id   uuid NOT NULL,
    body       text NOT NULL,
    created_at timestamptz NOT NULL
);

-- Webhooks that are to be sent: one per event, if the partner has an endpoint. Senders lock a batch of rows, skip locked ones, and delete the
-- rows after the receiver has responded.
CREATE TABLE outbox (
    outbox_id  bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    event_id   uuid NOT NULL,
    body       text NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0);

-- Reads of codes.
CREATE TABLE code_reads (
    read_id    bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    partner_id uuid NOT NULL,
    order_id   uuid NOT NULL,
    address    text NOT NULL,
    trace_id   uuid NOT NULL,
    read_at    timestamptz NOT NULL
);

-- Stored responses. A key is a hash of partner, endpoint and Idempotency-Key.
CREATE TABLE idempotency_keys (
    key         uuid PRIMARY KEY,
    fingerprint bytea NOT NULL CHECK (length(fingerprint) = 32),
    status      smallint NOT NULL,
    body        bytea NOT NULL,
    expires_at  timestamptz NOT NULL
);
