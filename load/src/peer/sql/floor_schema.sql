-- Schema of the floor: five tables with a primary key each and no other constraint that could reject a row.

CREATE TABLE orders (
    partner_id uuid NOT NULL,
    order_id   uuid NOT NULL,
    status     text NOT NULL,
    currency   text NOT NULL,
    total      bigint NOT NULL,
    lines      text NOT NULL,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (partner_id, order_id)
);

CREATE TABLE allocations (
    stock_id   bigint PRIMARY KEY,
    voucher_id uuid NOT NULL,
    partner_id uuid NOT NULL,
    order_id   uuid NOT NULL,
    line       smallint NOT NULL
);

CREATE TABLE balances (
    partner_id uuid NOT NULL,
    sequence   bigint NOT NULL,
    balance    bigint NOT NULL,
    PRIMARY KEY (partner_id, sequence)
);

CREATE TABLE ledger (
    partner_id     uuid NOT NULL,
    transaction_id uuid NOT NULL,
    currency       text NOT NULL,
    sequence       bigint NOT NULL,
    kind           text NOT NULL,
    amount         bigint NOT NULL,
    balance_after  bigint NOT NULL,
    order_id       uuid NOT NULL,
    created_at     timestamptz NOT NULL,
    PRIMARY KEY (partner_id, transaction_id)
);

CREATE TABLE events (
    partner_id uuid NOT NULL,
    number     bigint NOT NULL,
    order_id   uuid NOT NULL,
    body       text NOT NULL,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (partner_id, number)
);
