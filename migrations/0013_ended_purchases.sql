-- An order is due when one of its purchases has ended.
CREATE FUNCTION expedite_order_of_purchase() RETURNS trigger LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
AS $$
BEGIN
    -- Also if the order is due: a concurrent round may have read that the purchase is open, and postpones the order.
    UPDATE order_demands SET next_at = now() WHERE order_id = NEW.order_id;
    RETURN NULL;
END
$$;
CREATE TRIGGER purchase_ended AFTER UPDATE OF ended ON purchases
    FOR EACH ROW WHEN (NEW.ended AND NOT OLD.ended)
    EXECUTE FUNCTION expedite_order_of_purchase();
