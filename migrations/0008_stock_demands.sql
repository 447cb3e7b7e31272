-- Demands of nodes for stock that other nodes own. A row counts for a second after its last renewal. Unlogged: after a crash no
-- node waits any longer.
CREATE UNLOGGED TABLE stock_demands (
    product_id   text NOT NULL,
    denomination bigint NOT NULL,
    node         text NOT NULL,
    quantity     bigint NOT NULL, -- vouchers that the node's waiting orders lack
    demanded_at  timestamptz NOT NULL, -- the oldest demand of a SKU is served first
    renewed_at   timestamptz NOT NULL,
    PRIMARY KEY (product_id, denomination, node)
);
