-- What a vendor said last of a purchase and when, how many it has sold under it, and which of those were sold before: its
-- own names of them, since they are never taken in.
ALTER TABLE purchases ADD COLUMN answer text;
ALTER TABLE purchases ADD COLUMN answered_at timestamptz;
ALTER TABLE purchases ADD COLUMN sold integer NOT NULL DEFAULT 0;
ALTER TABLE purchases ADD COLUMN quarantined text[] NOT NULL DEFAULT '{}';

-- What operators look through, for one order.
CREATE INDEX purchases_of_order ON purchases (order_id);

-- Which vendors have run out of what, of late; and who has sold of it since.
CREATE INDEX purchases_out_of_stock ON purchases (answered_at) WHERE answer = 'OUT_OF_STOCK';
CREATE INDEX purchases_sold ON purchases (product_id, denomination, answered_at) WHERE sold > 0;

COMMENT ON COLUMN chunks.purchase_id IS
    'Under which id it is kept, and claimed by no shelf: for the order of that purchase, or for whoever waits for its SKU.';
