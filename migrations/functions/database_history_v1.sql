-- Id of the history of this database. Another one than before means that commits may be missing.
CREATE OR REPLACE FUNCTION database_history_v1() RETURNS uuid LANGUAGE sql STABLE
AS $$
    SELECT COALESCE((SELECT c.history FROM continuity AS c WHERE c.only_row), '00000000-0000-0000-0000-000000000000')
$$;
