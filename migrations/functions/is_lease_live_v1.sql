-- Whether a node's lease is live. A lease that was renewed in the future is not: the clock was fast and was set back, and the lease
-- would hold other nodes off until the clock is there again. 10 seconds allow for small corrections.
CREATE OR REPLACE FUNCTION is_lease_live_v1(p_lease_until timestamptz, p_renewed_at timestamptz)
RETURNS boolean
LANGUAGE sql VOLATILE -- as clock_timestamp is: the planner inlines it
AS $$
    SELECT p_lease_until >= clock_timestamp()
           AND p_renewed_at <= clock_timestamp() + interval '10 seconds'
$$;
