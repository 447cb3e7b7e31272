-- Up to p_limit unclaimed purchases of a vendor that are due for a request, those that are due longest first. Reads a range of the index
-- purchases_due in its order, and no more of it than it returns and what is claimed: a time that is not due ends the range, which a volatile
-- clock_timestamp() could not. For a table that was small when it was analysed the planner would else sort all.
CREATE OR REPLACE FUNCTION list_due_purchases_v1(p_vendor text, p_limit bigint)
RETURNS TABLE (purchase_id uuid, order_id uuid) LANGUAGE sql STABLE
SET enable_sort = off
SET enable_seqscan = off
SET enable_bitmapscan = off
AS $$
    SELECT p.purchase_id, p.order_id
      FROM purchases AS p
     WHERE p.vendor = p_vendor
       AND NOT p.ended
       AND p.next_at <= now()
       AND (p.claimed_until IS NULL OR p.claimed_until < now())
     ORDER BY p.next_at
     LIMIT p_limit
$$;
