//! Lists of servers, errors, and the TLS that production requires.

use super::*;

/// The addresses of a URL, as `host port`.
fn addresses(url: &str) -> Result<Vec<String>, DatabaseUrlError> {
    let servers = parse_database_url(url, Environment::Sandbox)?;
    let options = servers.options();
    let socket = |options: &PgConnectOptions| options.get_socket().map(|path| path.display().to_string());
    Ok(options
        .iter()
        .map(|options| {
            let host = socket(options).unwrap_or_else(|| options.get_host().to_owned());
            format!("{host} {}", options.get_port())
        })
        .collect())
}

#[test]
fn list_of_hosts_is_a_list_of_servers_with_shared_settings() {
    for (url, expected) in [
        ("postgres://one/db", &["one 5432"][..]),
        (
            "postgresql://user:a,b@one.example:5433,two.example/db?target_session_attrs=read-write",
            &["one.example 5433", "two.example 5432"],
        ),
        (
            "postgres://user@[2001:db8::1]:5433,[::1],10.0.0.1:5434/db?target_session_attrs=primary",
            &["2001:db8::1 5433", "::1 5432", "10.0.0.1 5434"],
        ),
        ("postgres://[::1]/db", &["::1 5432"]),
        (
            "postgres:///db?host=one,2001:db8::1,/run/postgresql&port=5433",
            &["one 5433", "2001:db8::1 5433", "/run/postgresql 5433"],
        ),
        (
            "postgres://user@/db?host=one,two&port=5433,",
            &["one 5433", "two 5432"],
        ),
        ("postgres://one,two/db?port=5433,5434", &["one 5433", "two 5434"]),
        // A server that is named twice is one server.
        (
            "postgres://one,two:5433,one:5432,two:5433,two/db",
            &["one 5432", "two 5433", "two 5432"],
        ),
        ("postgres://db.example/db?hostaddr=127.0.0.1", &["127.0.0.1 5432"]),
        (
            "postgres://%2Fvar%2Frun%2Fpostgresql:5433,two/db",
            &["/var/run/postgresql 5433", "two 5432"],
        ),
    ] {
        assert_eq!(addresses(url).unwrap(), expected, "{url}");
    }
    let url = "postgres://user:p%40,ss@one,two/db?application_name=x&sslmode=require&options=-c%20a.b%3D1";
    for options in parse_database_url(url, Environment::Sandbox).unwrap().options() {
        assert_eq!(options.get_username(), "user");
        assert_eq!(options.get_database(), Some("db"));
        assert_eq!(options.get_application_name(), Some("x"));
        assert_eq!(options.get_options(), Some("-c a.b=1"));
        assert!(matches!(options.get_ssl_mode(), PgSslMode::Require));
    }
}

#[test]
fn error_names_the_part_that_is_wrong_and_quotes_no_password() {
    for (url, expected) in [
        ("postgres://secret@one,,two/db", "host 2 of DATABASE_URL is empty"),
        (
            "postgres://secret@one,two:54321234/db",
            "host 2 of DATABASE_URL has a port that is no number from 1 to 65535",
        ),
        (
            "postgres://one:0/db",
            "host 1 of DATABASE_URL has a port that is no number from 1 to 65535",
        ),
        // A password that is not encoded.
        (
            "postgres://user:secret/secret@one/db",
            "host 1 of DATABASE_URL has a port that is no number from 1 to 65535",
        ),
        (
            "postgres://one,::1/db",
            "host 2 of DATABASE_URL is an IPv6 address without brackets, or has two ports: write [2001:db8::1]:5432",
        ),
        (
            "postgres://[one]/db",
            "host 1 of DATABASE_URL has brackets around something that is no IPv6 address",
        ),
        (
            "postgres://user:secret@one,two,three/db?port=1,2",
            "DATABASE_URL has 2 ports for 3 hosts: give one for all, or one for each",
        ),
        (
            "postgres://one/db?port=none",
            "the parameter port of DATABASE_URL has an invalid value",
        ),
        ("postgres:///db?host=one,", "host 2 of DATABASE_URL is empty"),
        (
            "postgres:///db?hostaddr=127.0.0.1,secret",
            "host 2 of DATABASE_URL is no IP address, as hostaddr requires",
        ),
        (
            "postgres://secret@one,two/db?target_session_attrs=any",
            "DATABASE_URL has target_session_attrs=any, and the service writes: leave it out, or set read-write or primary",
        ),
        (
            "postgres://one/db?target_session_attrs=secret",
            "the parameter target_session_attrs of DATABASE_URL has an invalid value",
        ),
        (
            "postgres://secret@one,two/db?sslmode=always",
            "the parameter sslmode of DATABASE_URL has an invalid value",
        ),
    ] {
        let error = parse_database_url(url, Environment::Sandbox)
            .unwrap_err()
            .to_string();
        assert_eq!(error, expected, "{url}");
        assert!(!error.contains("secret"), "{error}");
    }
}

#[test]
fn production_requires_verified_tls_or_a_unix_socket() {
    use DatabaseUrlError::{Invalid, UnverifiedTls};
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
        (
            "postgres://%2Fvar%2Frun%2Fpostgresql,db.example/vouchsafe",
            Err(UnverifiedTls),
        ),
        ("postgres://db.example/vouchsafe?sslmode=verify-full", Ok(())),
        (
            "postgres://one.example,two.example/vouchsafe?sslmode=verify-full",
            Ok(()),
        ),
        ("postgres://127.0.0.1/vouchsafe?ssl-mode=verify-full", Ok(())),
        ("postgres://vouchsafe@%2Fvar%2Frun%2Fpostgresql/vouchsafe", Ok(())),
        ("postgres:///vouchsafe?host=/var/run/postgresql", Ok(())),
        ("db.example", Err(Invalid)),
        ("mysql://db.example/vouchsafe", Err(Invalid)),
        ("jdbc:postgresql://db.example/vouchsafe", Err(Invalid)),
        (
            "postgresql://user:a,b@one.example/vouchsafe?sslmode=verify-full",
            Ok(()),
        ),
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
