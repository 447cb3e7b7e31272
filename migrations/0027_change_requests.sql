-- Changes that wait for a second operator. The change itself is encrypted: it may contain voucher codes.
CREATE TABLE change_requests (
    request_id   uuid PRIMARY KEY,
    kind         text NOT NULL,
    object       text NOT NULL,  -- id of the object that is changed, or name of the operator
    details      jsonb NOT NULL, -- what the second operator sees of the change: no code, no secret
    sealed       bytea,          -- null once the request has ended
    requested_by text NOT NULL,
    requested_at timestamptz NOT NULL DEFAULT now(),
    expires_at   timestamptz NOT NULL,
    status       text NOT NULL DEFAULT 'WAITING',
    decided_by   text,
    decided_at   timestamptz,
    reason       text,           -- why it was declined
    error_code   text,           -- why the confirmed change was refused
    CHECK (status IN ('WAITING', 'CONFIRMED', 'EXECUTED', 'REFUSED', 'DECLINED', 'EXPIRED')),
    CHECK (status NOT IN ('CONFIRMED', 'EXECUTED', 'REFUSED') OR decided_by <> requested_by),
    CHECK ((sealed IS NULL) = (status IN ('EXECUTED', 'REFUSED', 'DECLINED', 'EXPIRED')))
);
CREATE INDEX change_requests_open ON change_requests (expires_at) WHERE status IN ('WAITING', 'CONFIRMED');
