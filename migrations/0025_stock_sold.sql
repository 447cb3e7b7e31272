-- Number of vouchers of a SKU that belonged to orders at a time, written at most once an hour and only after a change. What was sold
-- within a week is the difference to the newest row that is a week old.
CREATE TABLE stock_sold (
    product_id   text NOT NULL REFERENCES products,
    denomination bigint NOT NULL,
    at           timestamptz NOT NULL,
    sold         bigint NOT NULL,
    PRIMARY KEY (product_id, denomination, at)
);
CREATE INDEX stock_sold_by_time ON stock_sold (at);
