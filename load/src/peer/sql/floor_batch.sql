WITH written_orders AS (
    INSERT INTO orders (partner_id, order_id, status, currency, total, lines, created_at)
    SELECT $1, r.order_id, 'DELIVERED', 'USD', r.total, r.lines, $2
      FROM unnest($3::uuid[], $4::bigint[], $5::text[]) AS r (order_id, total, lines)
), written_allocations AS (
    INSERT INTO allocations (stock_id, voucher_id, partner_id, order_id, line)
    SELECT r.number, r.voucher_id, $1, r.order_id, 1
      FROM unnest($6::bigint[], $7::uuid[], $3::uuid[]) AS r (number, voucher_id, order_id)
), written_balances AS (
    INSERT INTO balances (partner_id, sequence, balance)
    SELECT $1, r.number, -r.total
      FROM unnest($6::bigint[], $4::bigint[]) AS r (number, total)
), written_ledger AS (
    INSERT INTO ledger (
        partner_id, transaction_id, currency, sequence, kind, amount, balance_after, order_id, created_at)
    SELECT $1, r.transaction_id, 'USD', r.number, 'DEBIT', -r.total, 0, r.order_id, $2
      FROM unnest($8::uuid[], $6::bigint[], $4::bigint[], $3::uuid[])
           AS r (transaction_id, number, total, order_id)
)
INSERT INTO events (partner_id, number, order_id, body, created_at)
SELECT $1, r.number, r.order_id, r.body, $2
  FROM unnest($6::bigint[], $3::uuid[], $9::text[]) AS r (number, order_id, body)
