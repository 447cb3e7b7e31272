-- Version and start of the program that last took an incarnation of the node. Version 0.2.0 does not write them.
ALTER TABLE nodes
    ADD COLUMN version text,
    ADD COLUMN started_at timestamptz;
