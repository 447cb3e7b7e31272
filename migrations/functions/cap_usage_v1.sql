-- What a partner has used of a cap. commit_batch calls it under the advisory lock of the partner's caps; before that, the flow that
-- decides. Each branch is a range of one index. Orders are counted up to one more than the cap, if it is not null.
CREATE OR REPLACE FUNCTION cap_usage_v1(
    p_partner    uuid,
    p_kind       text,
    p_currency   text,
    p_credential uuid,
    p_day        date,
    p_since      uuid,
    p_cap        bigint
) RETURNS bigint LANGUAGE plpgsql STABLE
AS $$
BEGIN
    CASE p_kind
        WHEN 'pending_orders' THEN
            RETURN (SELECT count(*)
                      FROM (SELECT
                              FROM orders AS o
                             WHERE o.partner_id = p_partner AND NOT o.closed
                             LIMIT p_cap + 1) AS o);
        WHEN 'pending_amount' THEN
            RETURN COALESCE((SELECT w.pending_orders
                               FROM wallets AS w
                              WHERE w.partner_id = p_partner AND w.currency = p_currency), 0);
        WHEN 'recent_orders' THEN
            RETURN (SELECT count(*)
                      FROM (SELECT
                              FROM orders AS o
                             WHERE o.partner_id = p_partner AND o.order_id >= p_since
                             LIMIT p_cap + 1) AS o);
        WHEN 'recent_amount' THEN
            RETURN (SELECT COALESCE(sum(o.total), 0)::bigint
                      FROM orders AS o
                     WHERE o.partner_id = p_partner AND o.order_id >= p_since AND o.currency = p_currency);
        ELSE
            RETURN COALESCE((SELECT u.value
                               FROM partner_usage AS u
                              WHERE u.partner_id = p_partner
                                AND u.day = p_day
                                AND u.counter = concat_ws('/', p_kind, p_currency, p_credential)), 0);
    END CASE;
END
$$;
