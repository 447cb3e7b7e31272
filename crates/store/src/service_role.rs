//! Rights of the database role that serves: production refuses a role that could change the schema or what
//! must never change.

use sqlx::PgPool;

/// A right that the service's role must not have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the database role {role} {right}, but production serves with a role that can change neither the schema nor an entry of the \
     ledger, the audit log or the events: run deploy/postgres/roles.sql as a superuser and `vouchsafe migrate` as the owner, then \
     name the role vouchsafe_service in DATABASE_URL"
)]
pub struct ExcessRight {
    role: String,
    right: String,
}

/// Finds a right that the session's role must not have: its own, or that of a role which it may assume.
pub(super) async fn find_excess_right(pool: &PgPool) -> Result<Option<ExcessRight>, sqlx::Error> {
    // A superuser may assume every role, so that row comes first.
    let found = sqlx::query_as!(
        ExcessRight,
        r#"WITH assumable AS MATERIALIZED (
            SELECT r.oid, r.rolname, r.rolsuper, r.rolcreaterole
              FROM pg_roles AS r
             WHERE pg_has_role(session_user, r.oid, 'MEMBER')
         ), frozen (oid) AS (
            VALUES ('ledger'::regclass), ('audit_log'::regclass), ('audit_checkpoints'::regclass), ('events'::regclass)
         ), rights AS (
            SELECT 1 AS position, 'is a superuser' AS text FROM assumable WHERE rolsuper
             UNION ALL
            SELECT 2, 'may create roles' FROM assumable WHERE rolcreaterole
             UNION ALL
            SELECT 3, format('may act as %s', rolname)
              FROM assumable
             WHERE rolname IN ('pg_execute_server_program', 'pg_write_server_files')
             UNION ALL
            SELECT 4, format('owns %s', c.oid::regclass)
              FROM pg_class AS c
              JOIN assumable AS a ON a.oid = c.relowner
             WHERE c.relnamespace = (SELECT n.oid FROM pg_namespace AS n WHERE n.nspname = 'public')
             UNION ALL
            SELECT 5, format('owns the function %s', p.proname)
              FROM pg_proc AS p
              JOIN assumable AS a ON a.oid = p.proowner
             WHERE p.pronamespace = (SELECT n.oid FROM pg_namespace AS n WHERE n.nspname = 'public')
             UNION ALL
            SELECT 6, 'may create objects in the schema public'
              FROM assumable AS a
             WHERE has_schema_privilege(a.oid, 'public', 'CREATE')
             UNION ALL
            SELECT 7, format('has %s on %s', p.privilege, f.oid::regclass)
              FROM assumable AS a
             CROSS JOIN frozen AS f
             CROSS JOIN unnest(ARRAY['UPDATE', 'DELETE', 'TRUNCATE', 'TRIGGER']) AS p (privilege)
             WHERE has_table_privilege(a.oid, f.oid, p.privilege)
                OR p.privilege = 'UPDATE' AND has_any_column_privilege(a.oid, f.oid, p.privilege)
         )
         SELECT session_user::text AS "role!", r.text AS "right!"
           FROM rights AS r
          ORDER BY r.position, r.text
          LIMIT 1"#
    );
    found.fetch_optional(pool).await
}
