-- Requests that count against the rate limits, by family of credentials and class, for all nodes together: a row has the times and numbers of
-- up to some 65 buckets (count_requests_v1). Unlogged: a crash or a failover of the database loses what was counted, so counts
-- start with what the nodes publish next, and a window may admit its quota once more. The free space keeps updates on their page.
CREATE UNLOGGED TABLE rate_limit_usage (
    owner_id   uuid NOT NULL, -- first credential of a family, or a partner
    class      text NOT NULL,
    at_us      bigint[] NOT NULL, -- ends of the buckets, microseconds since 1970
    counts     integer[] NOT NULL,
    window_s   integer NOT NULL,
    expires_at timestamptz NOT NULL, -- when no bucket counts any more
    PRIMARY KEY (owner_id, class)
) WITH (fillfactor = 50);
