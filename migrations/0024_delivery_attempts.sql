-- Log of delivery attempts. The service creates a partition per day ahead of time and drops those past the retention period. There
-- is no default partition: a new partition would have to wait for a scan of it, so the writer creates a partition that is missing.
CREATE TABLE delivery_attempts (
    webhook_id uuid NOT NULL,
    attempt_id uuid NOT NULL, -- begins with the start of the attempt, to the microsecond
    partner_id uuid NOT NULL,
    number     bigint NOT NULL, -- the partner's number of the event
    event_at   timestamptz NOT NULL, -- the event's commit
    event      text NOT NULL,
    order_id   uuid NOT NULL,
    attempt    integer NOT NULL, -- from 1, since the first one or the last replay
    latency_ms integer NOT NULL,
    delivered  boolean NOT NULL,
    status     smallint,
    fault      text,
    answer     text NOT NULL, -- the first bytes of the response to a failed attempt
    retry_at   timestamptz,
    PRIMARY KEY (webhook_id, attempt_id),
    CHECK ((status IS NULL) <> (fault IS NULL))
) PARTITION BY RANGE (attempt_id);
CREATE INDEX delivery_attempts_failed ON delivery_attempts (webhook_id, attempt_id) WHERE NOT delivered;
CREATE INDEX delivery_attempts_of_order ON delivery_attempts (webhook_id, order_id, number);
