-- expand

-- What partners show of a product in its own language, and its texts in others. No statement of an order reads them.
ALTER TABLE products
    ADD COLUMN content jsonb NOT NULL DEFAULT '{}',
    ADD COLUMN translations jsonb NOT NULL DEFAULT '[]';
