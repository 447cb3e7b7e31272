-- What an order's row costs its batch. Two columns of JSON were read, built and written as trees with each order, and one of
-- them said in most orders what the row says anyway. A program from before this migration does not read orders after it.
ALTER TABLE orders
    ALTER COLUMN lines TYPE text USING lines::text,
    ALTER COLUMN timeline DROP NOT NULL; -- null: the order stands as it was placed, at created_at

-- The timeline of an order, spelled out.
CREATE FUNCTION timeline_of(placed orders) RETURNS jsonb LANGUAGE sql STABLE AS $$
    SELECT COALESCE(
        placed.timeline,
        jsonb_build_array(jsonb_build_object(
            'status', placed.status, 'at', placed.created_at, 'by', 'partner', 'reason', NULL
        ))
    )
$$;
