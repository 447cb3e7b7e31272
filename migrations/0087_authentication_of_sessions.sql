-- When the person of a session authenticated at the identity provider, by the provider's clock; null: by a one-time link, or the provider did
-- not say. Money is moved by sessions with a recent one.
ALTER TABLE operator_sessions ADD COLUMN authenticated_at timestamptz;
