-- Returns the codes of an order and records the read. The lock of the order excludes a cancellation.
CREATE FUNCTION retrieve_codes(
    p_partner uuid,
    p_order uuid,
    p_address text,
    p_trace uuid,
    p_at timestamptz
) RETURNS TABLE (
    voucher_id uuid,
    expiry date,
    ciphertext bytea
) LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
    PERFORM
       FROM orders AS o
      WHERE o.partner_id = p_partner
        AND o.order_id = p_order
        FOR UPDATE;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    INSERT INTO code_reads (partner_id, order_id, address, trace_id, read_at)
    VALUES (p_partner, p_order, p_address, p_trace, p_at);
    UPDATE allocations AS a
       SET first_retrieved_at = p_at
     WHERE a.partner_id = p_partner
       AND a.order_id = p_order
       AND a.first_retrieved_at IS NULL;
    RETURN QUERY
    SELECT a.voucher_id, a.expiry, c.ciphertext
      FROM allocations AS a
      JOIN vouchers AS v ON v.stock_id = a.stock_id
      JOIN codes AS c ON c.code_id = v.code_id
     WHERE a.partner_id = p_partner
       AND a.order_id = p_order
     ORDER BY a.expiry, a.stock_id;
END
$$;
