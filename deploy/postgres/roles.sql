-- Roles of the service. Run it in the service's database as a superuser, once, and again whenever you like:
--
--     sudo -u postgres psql --dbname vouchsafe --set ON_ERROR_STOP=1 --file roles.sql
--
-- | Role | Used by | Rights |
-- |---|---|---|
-- | vouchsafe | `vouchsafe migrate` | owns the database and its objects |
-- | vouchsafe_service | `vouchsafe serve` and all other commands | those that `vouchsafe migrate` grants: no change of the schema, and no change
-- |                   |                                          | or removal of a row of the ledger, the audit log, its checkpoints or the events |
--
-- Set the passwords with `\password vouchsafe` and `\password vouchsafe_service`. A login of its own for each node: CREATE ROLE node_1
-- LOGIN IN ROLE vouchsafe_service. Roles belong to the server, not to the database: use a server for each environment.
DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'vouchsafe') THEN
        CREATE ROLE vouchsafe;
    END IF;
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'vouchsafe_service') THEN
        CREATE ROLE vouchsafe_service;
    END IF;
    EXECUTE format('ALTER DATABASE %I OWNER TO vouchsafe', current_database());
    EXECUTE format('REVOKE ALL ON DATABASE %I FROM PUBLIC', current_database());
    -- Temporary tables are used by the comparison with a vendor's records.
    EXECUTE format('GRANT CONNECT, TEMPORARY ON DATABASE %I TO vouchsafe_service', current_database());
END
$$;
ALTER ROLE vouchsafe LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS;
ALTER ROLE vouchsafe_service LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS;
-- Before version 15 of Postgres everybody may create objects there, also functions that the owner would call by mistake.
REVOKE ALL ON SCHEMA public FROM PUBLIC;
GRANT USAGE, CREATE ON SCHEMA public TO vouchsafe;
GRANT USAGE ON SCHEMA public TO vouchsafe_service;
