-- Counts requests of a node against a rate limit, and admits up to p_wanted more while the deployment is below the quota. Returns the number
-- admitted and all requests that count, including these, by age.
--
-- The lock on the row serializes the nodes. Callers pass several windows in order of their keys, so that they do not deadlock.
-- Times are rounded up to the end of a bucket: no request stops counting early. A time after the current bucket, from before the
-- clock was set back, becomes the current one.
CREATE OR REPLACE FUNCTION count_requests_v1(
    p_owner_id uuid,
    p_class     text,
    p_quota     integer,
    p_window_s  integer,
    p_ages_us   bigint[],
    p_counts    integer[],
    p_wanted    integer,
    OUT admitted integer,
    OUT ages_us  bigint[],
    OUT counts   integer[])
LANGUAGE plpgsql
AS $$
DECLARE
    v_window_us CONSTANT bigint := p_window_s * 1000000::bigint;
    v_length_us CONSTANT bigint := v_window_us / 64;
    v_at_us     bigint[];
    v_now_us    bigint;
    v_end_us    bigint; -- of the current bucket
    v_used      bigint;
BEGIN
    INSERT INTO rate_limit_usage AS u (owner_id, class, at_us, counts, window_s, expires_at)
    VALUES (p_owner_id, p_class, '{}', '{}', p_window_s, clock_timestamp())
        ON CONFLICT ON CONSTRAINT rate_limit_usage_pkey DO UPDATE SET window_s = EXCLUDED.window_s
    RETURNING u.at_us, u.counts INTO v_at_us, counts;

    v_now_us := extract(epoch FROM clock_timestamp()) * 1000000;
    v_end_us := (v_now_us / v_length_us + 1) * v_length_us;
    SELECT COALESCE(array_agg(b.at_us ORDER BY b.at_us), '{}'), COALESCE(array_agg(b.number ORDER BY b.at_us), '{}'), COALESCE(sum(b.number), 0)
      INTO v_at_us, counts, v_used
      FROM (SELECT r.at_us, LEAST(sum(r.number), 2000000000)::integer AS number
              FROM (SELECT LEAST(stored.at_us, v_end_us) AS at_us, stored.number
                      FROM unnest(v_at_us, counts) AS stored (at_us, number)
                     UNION ALL
                    SELECT ((v_now_us - published.age_us) / v_length_us + 1) * v_length_us, published.number
                      FROM unnest(p_ages_us, p_counts) AS published (age_us, number)
                   ) AS r
             WHERE r.at_us + v_window_us > v_now_us
             GROUP BY r.at_us) AS b;

    admitted := LEAST(p_wanted, GREATEST(p_quota - v_used, 0));
    IF admitted > 0 AND v_at_us[cardinality(v_at_us)] = v_end_us THEN
        counts[cardinality(counts)] := counts[cardinality(counts)] + admitted;
    ELSIF admitted > 0 THEN
        v_at_us := v_at_us || v_end_us;
        counts := counts || admitted;
    END IF;
    UPDATE rate_limit_usage AS u
       SET at_us = v_at_us,
           counts = count_requests_v1.counts,
           expires_at = clock_timestamp() + make_interval(secs => p_window_s + p_window_s / 64.0)
     WHERE u.owner_id = p_owner_id AND u.class = p_class;
    SELECT COALESCE(array_agg(v_now_us - e.at_us ORDER BY e.number), '{}')
      INTO ages_us
      FROM unnest(v_at_us) WITH ORDINALITY AS e (at_us, number);
END
$$;
