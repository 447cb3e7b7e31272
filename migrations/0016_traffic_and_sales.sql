-- expand
-- Traffic of all nodes by minute, for 30 days. Each node adds its own counts to the row of a minute, once.
CREATE TABLE traffic_minutes (
    minute       timestamptz PRIMARY KEY,
    requests     bigint NOT NULL,  -- of partners
    unavailable  bigint NOT NULL,  -- of these, answered with 503
    orders       bigint NOT NULL,  -- POST /orders answered with 2xx
    order_p50_us integer,          -- of the node on which it was longest, like the next two; null without orders
    order_p99_us integer,
    commit_us    integer NOT NULL  -- the longest of the last commits of the lanes, seen once a second
);

-- Accepted orders of all nodes by day in UTC, for 30 days, by partner and by product. Each node adds its own once a minute.
CREATE TABLE sales_days (
    day      date NOT NULL,
    kind     text NOT NULL CHECK (kind IN ('partner', 'product')),
    key      text COLLATE "C" NOT NULL, -- id of the partner or product
    currency text COLLATE "C" NOT NULL,
    orders   bigint NOT NULL, -- lines of orders for a product
    vouchers bigint NOT NULL,
    total    bigint NOT NULL, -- minor units
    PRIMARY KEY (day, kind, key, currency)
);
