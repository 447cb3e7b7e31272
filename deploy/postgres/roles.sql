-- Roles of the service. Run it in the service's database once, and again whenever you like, as a superuser, or as the role that owns the
-- database and may create roles and databases (CREATEROLE, CREATEDB), as on managed Postgres:
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
    -- Who is no superuser gives the database only to a role that it belongs to.
    IF NOT (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) THEN
        EXECUTE format('GRANT vouchsafe TO %I', current_user);
    END IF;
    EXECUTE format('ALTER DATABASE %I OWNER TO vouchsafe', current_database());
    EXECUTE format('REVOKE ALL ON DATABASE %I FROM PUBLIC', current_database());
    -- Temporary tables are used by the comparison with a vendor's records.
    EXECUTE format('GRANT CONNECT, TEMPORARY ON DATABASE %I TO vouchsafe_service', current_database());
    -- Only a superuser may name these attributes, also to remove one. New roles have none of them.
    IF EXISTS (SELECT FROM pg_roles
                WHERE rolname IN ('vouchsafe', 'vouchsafe_service')
                  AND (rolsuper OR rolcreatedb OR rolcreaterole OR rolreplication OR rolbypassrls)) THEN
        ALTER ROLE vouchsafe NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS;
        ALTER ROLE vouchsafe_service NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS;
    END IF;
END
$$;
ALTER ROLE vouchsafe LOGIN;
ALTER ROLE vouchsafe_service LOGIN;
-- Before version 15 of Postgres everybody may create objects there, also functions that the owner would call by mistake.
REVOKE ALL ON SCHEMA public FROM PUBLIC;
GRANT USAGE, CREATE ON SCHEMA public TO vouchsafe;
GRANT USAGE ON SCHEMA public TO vouchsafe_service;
