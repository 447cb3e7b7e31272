-- Counts of an emptied chunk, from which stock levels are added up; null: not counted yet. They never change: an emptied chunk
-- has no free voucher, and an allocation stays an order's or a withdrawal's. The other vouchers of the chunk were sold.
--
-- restocked: vouchers that came back from an order. Each is in stock a second time, and as many rows before are returned.
ALTER TABLE chunks
    ADD COLUMN voided integer,
    ADD COLUMN expired integer,
    ADD COLUMN restocked integer;
