-- What is bought for the lines of orders. The id is the vendor's idempotency key: it is here before the vendor hears of it,
-- and an unknown outcome is asked about under it until somebody knows.
CREATE TABLE purchases (
    purchase_id   uuid PRIMARY KEY,
    partner_id    uuid NOT NULL,
    order_id      uuid NOT NULL,
    line          smallint NOT NULL,
    vendor        text NOT NULL,
    product_id    text NOT NULL,
    denomination  bigint NOT NULL,
    currency      text NOT NULL,
    quantity      integer NOT NULL CHECK (quantity > 0),
    expiry_policy jsonb NOT NULL,
    requested_at  timestamptz NOT NULL,
    asked         boolean NOT NULL DEFAULT false, -- the vendor may have heard of it
    ended         boolean NOT NULL DEFAULT false, -- nothing more comes of it
    last_word     text,                           -- why it was not all bought when it was last asked about
    next_at       timestamptz NOT NULL DEFAULT now(),
    claimed_by    text,                           -- a node asks about it
    claimed_until timestamptz,
    UNIQUE (partner_id, order_id, line)
);
CREATE INDEX purchases_due ON purchases (vendor, next_at) WHERE NOT ended;

-- What is to be taken up, oldest first.
CREATE INDEX orders_for_vendors ON orders (order_id) WHERE pending_reason = 'VENDOR' AND NOT closed;

-- Stock that was bought for an order is kept for it until it is delivered, or no longer wanted: no shelf claims it.
ALTER TABLE chunks ADD COLUMN purchase_id uuid;
CREATE INDEX chunks_of_purchase ON chunks (purchase_id) WHERE purchase_id IS NOT NULL;

-- Where a code was bought, and under which name of the vendor's.
ALTER TABLE codes ADD COLUMN purchase_id uuid;
ALTER TABLE codes ADD COLUMN vendor_reference text;
CREATE INDEX codes_of_purchase ON codes (purchase_id) WHERE purchase_id IS NOT NULL;
