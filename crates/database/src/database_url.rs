//! Parser of `DATABASE_URL`, and the TLS that production requires of it.

use sqlx::postgres::{PgConnectOptions, PgSslMode};
use vouchsafe_security::environment::Environment;

/// Why `DATABASE_URL` cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DatabaseUrlError {
    /// Leaves out the parser's reason, which may quote the URL with its password.
    #[error("DATABASE_URL is not a Postgres URL such as postgres://user@host/database")]
    Invalid,
    #[error(
        "DATABASE_URL names several hosts, and the service connects to one: name the address that follows the primary server, such as that of a \
         proxy or a virtual IP address"
    )]
    SeveralHosts,
    #[error(
        "production requires TLS with a verified certificate between the service and Postgres: add sslmode=verify-full to \
         DATABASE_URL, with sslrootcert=FILE if the certificate comes from an authority of your own, or name the directory of \
         the server's Unix socket: postgres://USER@%2Fvar%2Frun%2Fpostgresql/DATABASE"
    )]
    UnverifiedTls,
}

const SCHEMES: [&str; 2] = ["postgres://", "postgresql://"];

/// Parses `DATABASE_URL`. Settings that it lacks come from libpq's environment variables, such as `PGSSLMODE`.
///
/// Production takes a Unix socket or `verify-full`. Loopback is no exception: while Postgres is stopped, any local user can listen
/// on its port and ask the service for its password, but not in the directory of its socket.
///
/// # Errors
/// [`DatabaseUrlError`].
pub fn parse_database_url(url: &str, environment: Environment) -> Result<PgConnectOptions, DatabaseUrlError> {
    // The parser takes the URL of any scheme, and several hosts as the name of one.
    let rest = SCHEMES.iter().find_map(|scheme| url.strip_prefix(scheme));
    let authority = rest
        .and_then(|rest| rest.split(['/', '?']).next())
        .ok_or(DatabaseUrlError::Invalid)?;
    if authority
        .rsplit('@')
        .next()
        .is_some_and(|hosts| hosts.contains(','))
    {
        return Err(DatabaseUrlError::SeveralHosts);
    }
    let options: PgConnectOptions = url.parse().map_err(|_| DatabaseUrlError::Invalid)?;
    let is_socket = options.get_socket().is_some() || options.get_host().starts_with('/');
    // `verify-ca` accepts the certificate of any host of the authority, which may be a public one.
    let is_verified = matches!(options.get_ssl_mode(), PgSslMode::VerifyFull);
    match environment {
        Environment::Production if !is_socket && !is_verified => Err(DatabaseUrlError::UnverifiedTls),
        Environment::Production | Environment::Sandbox => Ok(options),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn production_requires_verified_tls_or_a_unix_socket() {
        use DatabaseUrlError::{Invalid, SeveralHosts, UnverifiedTls};
        for (url, expected) in [
            ("postgres://db.example/vouchsafe", Err(UnverifiedTls)),
            (
                "postgres://db.example/vouchsafe?sslmode=prefer",
                Err(UnverifiedTls),
            ),
            (
                "postgres://db.example/vouchsafe?sslmode=require",
                Err(UnverifiedTls),
            ),
            (
                "postgres://db.example/vouchsafe?sslmode=verify-ca",
                Err(UnverifiedTls),
            ),
            (
                "postgres://db.example/vouchsafe?sslmode=verify-full&sslmode=disable",
                Err(UnverifiedTls),
            ),
            ("postgres://127.0.0.1/vouchsafe", Err(UnverifiedTls)),
            ("postgres://[::1]/vouchsafe", Err(UnverifiedTls)),
            ("postgres://localhost/vouchsafe", Err(UnverifiedTls)),
            (
                "postgres://db.example/vouchsafe?hostaddr=127.0.0.1",
                Err(UnverifiedTls),
            ),
            ("postgres://db.example/vouchsafe?sslmode=verify-full", Ok(())),
            ("postgres://127.0.0.1/vouchsafe?ssl-mode=verify-full", Ok(())),
            ("postgres://vouchsafe@%2Fvar%2Frun%2Fpostgresql/vouchsafe", Ok(())),
            ("postgres:///vouchsafe?host=/var/run/postgresql", Ok(())),
            ("db.example", Err(Invalid)),
            ("mysql://db.example/vouchsafe", Err(Invalid)),
            ("jdbc:postgresql://db.example/vouchsafe", Err(Invalid)),
            (
                "postgresql://user:a,b@one.example:5432,two.example:5432/vouchsafe?target_session_attrs=read-write",
                Err(SeveralHosts),
            ),
            (
                "postgresql://user:a,b@one.example/vouchsafe?sslmode=verify-full",
                Ok(()),
            ),
            ("postgres://db.example/vouchsafe?sslmode=always", Err(Invalid)),
        ] {
            let parsed = |environment| parse_database_url(url, environment).map(drop);
            assert_eq!(parsed(Environment::Production), expected, "{url}");
            let in_sandbox = if expected == Err(UnverifiedTls) {
                Ok(())
            } else {
                expected
            };
            assert_eq!(parsed(Environment::Sandbox), in_sandbox, "{url}");
        }
    }
}
