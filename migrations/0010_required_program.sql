-- expand
-- Which programs can use the schema: a migration that removes something waits for the nodes that need it.

-- Last migration of the program that took this incarnation. An earlier version writes neither column: program_migration is known
-- only if program_incarnation is the incarnation.
ALTER TABLE nodes ADD COLUMN program_migration bigint, ADD COLUMN program_incarnation bigint;

-- Programs whose last migration is an earlier one use what was removed since, and refuse to start. `version` is the first one that
-- does not.
CREATE TABLE required_program (
    only_row  boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    migration bigint NOT NULL,
    version   text NOT NULL
);
INSERT INTO required_program (migration, version) VALUES (1, '1.0.0-rc.1');
