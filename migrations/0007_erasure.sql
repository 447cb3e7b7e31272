-- Erasure of personal data: what a partner or an operator wrote in an order or a payout.

ALTER TABLE orders ADD COLUMN erased_at timestamptz;
ALTER TABLE payouts ADD COLUMN erased_at timestamptz;

-- An erased order may still be cancelled, by a flow that has read it before: what that flow writes is erased, too.
CREATE FUNCTION erase_order() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.reference := NULL;
    NEW.metadata := NULL;
    SELECT jsonb_agg(t.entry || '{"reason": null}' ORDER BY t.position)
      INTO NEW.timeline
      FROM jsonb_array_elements(NEW.timeline) WITH ORDINALITY AS t (entry, position);
    RETURN NEW;
END
$$;
CREATE TRIGGER erased_order BEFORE UPDATE ON orders
    FOR EACH ROW WHEN (NEW.erased_at IS NOT NULL)
    EXECUTE FUNCTION erase_order();

-- The decision on a payout is final: nothing is written afterwards.
CREATE FUNCTION erase_payout() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.reference := NULL;
    NEW.destination := jsonb_build_object('type', NEW.destination::jsonb -> 'type')::text;
    NEW.destination_sealed := '';
    SELECT jsonb_agg(t.entry || '{"reason": null, "reference": null}' ORDER BY t.position)
      INTO NEW.timeline
      FROM jsonb_array_elements(NEW.timeline) WITH ORDINALITY AS t (entry, position);
    RETURN NEW;
END
$$;
CREATE TRIGGER erased_payout BEFORE UPDATE ON payouts
    FOR EACH ROW WHEN (NEW.erased_at IS NOT NULL)
    EXECUTE FUNCTION erase_payout();
