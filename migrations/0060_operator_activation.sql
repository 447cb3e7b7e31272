-- A token that another operator has requested is inactive until its holder redeems the code that the confirming operator received; null: it
-- is active. An account that a second operator has confirmed is inactive until then.
ALTER TABLE operators ADD COLUMN active boolean NOT NULL DEFAULT true;
ALTER TABLE operator_tokens
    ADD COLUMN activation_hash bytea CHECK (length(activation_hash) = 32),
    ADD COLUMN session_id uuid; -- the session that issued it, with which it ends
