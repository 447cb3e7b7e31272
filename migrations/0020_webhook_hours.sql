-- expand
-- Attempts to deliver to an endpoint by hour of their start, for 30 days. Each node adds the attempts that it logs.
CREATE TABLE webhook_hours (
    webhook_id uuid NOT NULL,
    hour       timestamptz NOT NULL,
    delivered  bigint NOT NULL,
    failed     bigint NOT NULL,
    latency_ms bigint NOT NULL,  -- sum of all attempts
    longest_ms integer NOT NULL, -- the longest attempt
    PRIMARY KEY (webhook_id, hour)
) WITH (fillfactor = 50); -- updated four times a second while events flow
CREATE INDEX webhook_hours_by_hour ON webhook_hours (hour); -- which are too old
