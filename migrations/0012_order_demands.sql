-- Demand of waiting orders per SKU: one row for each SKU of which an order that waits for vouchers lacks some. A trigger maintains
-- the rows, so that orders written by version 0.2.0 have theirs, too. Locked after the order.
CREATE TABLE order_demands (
    product_id   text NOT NULL,
    denomination bigint NOT NULL,
    order_id     uuid NOT NULL, -- begins with the time of acceptance: the oldest is first
    partner_id   uuid NOT NULL,
    accepted_at  timestamptz NOT NULL,
    next_at      timestamptz NOT NULL DEFAULT now(), -- when the service looks whether the order can proceed
    PRIMARY KEY (product_id, denomination, order_id)
);
CREATE INDEX order_demands_due ON order_demands (product_id, denomination, next_at);
CREATE INDEX order_demands_of_order ON order_demands (order_id);

-- Writes the demands of an order and makes it due. Plans must stay index probes, whatever the table size was at plan time.
CREATE FUNCTION update_order_demands() RETURNS trigger LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET jit = off
AS $$
BEGIN
    DELETE FROM order_demands WHERE order_id = NEW.order_id;
    IF NEW.pending_reason = 'VENDOR' AND NOT NEW.closed THEN
        INSERT INTO order_demands (product_id, denomination, order_id, partner_id, accepted_at)
        SELECT DISTINCT l ->> 'p', (l ->> 'd')::bigint, NEW.order_id, NEW.partner_id, NEW.created_at
          FROM jsonb_array_elements(NEW.lines::jsonb) AS l
         WHERE (l ->> 'q')::integer > (l ->> 'a')::integer + COALESCE((l ->> 'f')::integer, 0);
    END IF;
    RETURN NULL;
END
$$;

-- The conditions keep the triggers from being called for orders that are delivered at once.
CREATE TRIGGER new_order_demands AFTER INSERT ON orders
    FOR EACH ROW WHEN (NEW.pending_reason = 'VENDOR' AND NOT NEW.closed)
    EXECUTE FUNCTION update_order_demands();
CREATE TRIGGER changed_order_demands AFTER UPDATE ON orders
    FOR EACH ROW WHEN (OLD.pending_reason = 'VENDOR' AND NOT OLD.closed OR NEW.pending_reason = 'VENDOR' AND NOT NEW.closed)
    EXECUTE FUNCTION update_order_demands();
