ALTER TABLE products
    ADD COLUMN code_identity text NOT NULL DEFAULT 'code',
    ADD CONSTRAINT code_identity_known CHECK (code_identity IN ('code', 'code_and_pin')) NOT VALID;
