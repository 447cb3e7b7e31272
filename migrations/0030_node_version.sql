-- What runs as the node: the version of the program and its start. Null for a node that last ran version 0.2.0.
ALTER TABLE nodes
    ADD COLUMN version text,
    ADD COLUMN started_at timestamptz;
