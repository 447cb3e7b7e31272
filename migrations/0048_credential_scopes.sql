-- What a credential may do; null: everything. Version 0.2.0 ignores the scopes.
ALTER TABLE credentials ADD COLUMN scopes text[];
