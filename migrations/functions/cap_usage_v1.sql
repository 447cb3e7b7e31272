-- What a partner has used of a cap. commit_batch calls it once per counter under the advisory lock of the partner's caps; before that, the flow
-- that decides. Each branch is a range of one index. Pending orders are counted up to one more than the cap, if it is not null.
--
-- An order rate is a difference of running totals, by the database's clock: of the newest total with what the ledger has since, and of the
-- last total of a second that ended before the window. It therefore counts orders of up to a second before the window, too, and never
-- fewer than those of the window.
CREATE OR REPLACE FUNCTION cap_usage_v1(
    p_partner    uuid,
    p_kind       text,
    p_currency   text,
    p_credential uuid,
    p_day        date,
    p_within_s   integer,
    p_cap        bigint
) RETURNS bigint LANGUAGE plpgsql STABLE
AS $$
DECLARE
    -- Not volatile within the statement, so that an index finds it.
    v_since timestamptz := date_trunc('second', clock_timestamp() - make_interval(secs => p_within_s));
BEGIN
    CASE
        WHEN p_kind = 'pending_orders' THEN
            RETURN (SELECT count(*)
                      FROM (SELECT
                              FROM orders AS o
                             WHERE o.partner_id = p_partner AND NOT o.closed
                             LIMIT p_cap + 1) AS o);
        WHEN p_kind = 'pending_amount' THEN
            RETURN COALESCE((SELECT w.pending_orders
                               FROM wallets AS w
                              WHERE w.partner_id = p_partner AND w.currency = p_currency), 0);
        WHEN p_kind IN ('recent_orders', 'recent_amount') THEN
            RETURN (SELECT COALESCE(sum(CASE p_kind
                                        WHEN 'recent_orders' THEN COALESCE(t.orders, 0) + r.orders - COALESCE(b.orders, 0)
                                        ELSE COALESCE(t.total, 0) + r.total - COALESCE(b.total, 0)
                                        END), 0)::bigint
                      FROM wallets AS w
                      LEFT JOIN LATERAL (
                            SELECT *
                              FROM order_totals AS t
                             WHERE t.partner_id = w.partner_id AND t.currency = w.currency
                             ORDER BY t.at DESC
                             LIMIT 1
                           ) AS t ON true
                      LEFT JOIN LATERAL (
                            SELECT *
                              FROM order_totals AS b
                             WHERE b.partner_id = w.partner_id
                               AND b.currency = w.currency
                               AND b.at < v_since
                             ORDER BY b.at DESC
                             LIMIT 1
                           ) AS b ON true
                     CROSS JOIN LATERAL (
                            SELECT count(*) AS orders, COALESCE(-sum(l.amount), 0) AS total
                              FROM ledger AS l
                             WHERE l.partner_id = w.partner_id
                               AND l.currency = w.currency
                               AND l.sequence > COALESCE(t.sequence, w.sequence - 1000000)
                               AND l.kind = 'DEBIT'
                           ) AS r
                     WHERE w.partner_id = p_partner AND (p_currency IS NULL OR w.currency = p_currency));
        ELSE
            RETURN COALESCE((SELECT u.value
                               FROM partner_usage AS u
                              WHERE u.partner_id = p_partner
                                AND u.day = p_day
                                AND u.counter = concat_ws('/', p_kind, p_currency, p_credential)), 0);
    END CASE;
END
$$;
