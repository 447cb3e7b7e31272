-- Evidence of the database's clock, so that a step of it is recognized: when the lease was renewed, and the latest time that any
-- renewal of the node has seen. Null for a node that still runs version 0.2.0.
ALTER TABLE nodes
    ADD COLUMN renewed_at timestamptz,
    ADD COLUMN latest_clock timestamptz;
