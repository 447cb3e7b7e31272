//! Settings that production requires (contract §1).

use anyhow::bail;
use vouchsafe_security::environment::Environment;
use vouchsafe_security::listener::Transport;

use crate::settings::ServeSettings;

/// Checks that all required settings are present.
///
/// # Errors
/// The first missing setting, and how to set it.
pub(super) fn check(settings: &ServeSettings) -> anyhow::Result<()> {
    if settings.environment == Environment::Sandbox {
        return Ok(());
    }
    if !settings.keys.has_key() {
        bail!(
            "production requires VOUCHSAFE_MASTER_KEY: 64 hex digits or base64 of 32 random bytes; or VOUCHSAFE_KMS=vault-transit"
        );
    }
    if settings.database.servers(settings.environment)?.is_none() {
        bail!("production requires DATABASE_URL: the URL of a Postgres database");
    }
    for (name, listener, list, proxies, certificate) in [
        (
            "VOUCHSAFE_HTTP_ADDR",
            settings.partner_listener(),
            "VOUCHSAFE_TRUSTED_PROXIES",
            &settings.trusted_proxies,
            "VOUCHSAFE_TLS_CERTIFICATE_FILE",
        ),
        (
            "VOUCHSAFE_ADMIN_ADDR",
            settings.operator_listener(),
            "VOUCHSAFE_ADMIN_TRUSTED_PROXIES",
            &settings.admin_trusted_proxies,
            "VOUCHSAFE_ADMIN_TLS_CERTIFICATE_FILE",
        ),
    ] {
        let is_local = listener.address.ip().is_loopback();
        if !is_local && proxies.is_empty() && listener.transport == Transport::Plain {
            bail!(
                "production requires TLS: set {certificate}, or {name} to a loopback address, or {list} to \
                 the networks of the TLS proxies"
            );
        }
    }
    let console = settings.console_url();
    if !console.permits_sessions(settings.environment)
        && (settings.has_console_url() || settings.oidc.provider()?.is_some())
    {
        bail!(
            "production requires https for the sign-in of operators: set VOUCHSAFE_CONSOLE_URL to the \
             https URL of the operator listener; browsers send the cookies of {console} to every port of \
             this machine"
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::*;
    use crate::program::Cli;

    const COMPLETE: [&str; 6] = [
        "--environment",
        "production",
        "--master-key",
        "key",
        "--database-url",
        "postgres://db/vouchsafe?sslmode=verify-full",
    ];

    /// The error message for these settings; empty if they are valid.
    fn complaint(arguments: &[&str]) -> String {
        let arguments: Vec<OsString> = ["vouchsafe"]
            .iter()
            .chain(arguments)
            .map(OsString::from)
            .collect();
        let cli = Cli::read(&arguments).unwrap();
        check(cli.serve_settings())
            .err()
            .map(|error| error.to_string())
            .unwrap_or_default()
    }

    fn complaint_without(left_out: usize) -> String {
        let remaining = COMPLETE
            .chunks(2)
            .enumerate()
            .filter(|(position, _)| *position != left_out);
        complaint(
            &remaining
                .flat_map(|(_, setting)| setting)
                .copied()
                .collect::<Vec<_>>(),
        )
    }

    #[test]
    fn missing_key_or_database_is_rejected() {
        for (left_out, named) in [(1, "VOUCHSAFE_MASTER_KEY"), (2, "DATABASE_URL")] {
            let message = complaint_without(left_out);
            assert!(
                message.starts_with(&format!("production requires {named}: ")),
                "{message}"
            );
        }
        assert_eq!(complaint(&COMPLETE), "");
        assert_eq!(complaint(&[]), "", "the sandbox generates its own");
        // As an unset variable in a settings file or a container.
        let mut empty = COMPLETE;
        empty[3] = "";
        let message = complaint(&empty);
        assert!(
            message.starts_with("production requires VOUCHSAFE_MASTER_KEY: "),
            "{message:?}"
        );
    }

    #[test]
    fn database_url_without_verified_tls_is_rejected() {
        let message = complaint(&[&COMPLETE[..4], &["--database-url", "postgres://db/vouchsafe"]].concat());
        assert!(
            message.contains("add sslmode=verify-full to DATABASE_URL"),
            "{message}"
        );
        assert_eq!(complaint(&["--database-url", "postgres://db/vouchsafe"]), "");
    }

    #[test]
    fn sign_in_over_plain_http_is_rejected() {
        let oidc = [
            "--oidc-issuer",
            "https://id.example.com",
            "--oidc-client-id",
            "vouchsafe",
            "--oidc-client-secret",
            "secret",
            "--oidc-roles",
            "staff=viewer",
        ];
        for (settings, is_valid) in [
            (&[][..], true),
            (&["--console-url", "http://127.0.0.1:8081"], false),
            (&oidc, false),
            (&["--console-url", "https://console.example.com"], true),
            (
                &[&oidc[..], &["--console-url", "https://console.example.com"]].concat(),
                true,
            ),
            (
                &[&oidc[..], &["--admin-tls-certificate-file", "a.pem"]].concat(),
                true,
            ),
        ] {
            let message = complaint(&[&COMPLETE[..], settings].concat());
            assert_eq!(message.is_empty(), is_valid, "{settings:?}: {message}");
            assert!(
                is_valid || message.contains("set VOUCHSAFE_CONSOLE_URL"),
                "{message}"
            );
        }
        assert_eq!(complaint(&["--console-url", "http://127.0.0.1:8081"]), "");
    }

    #[test]
    fn non_loopback_address_requires_tls_or_its_proxies() {
        let partners = (
            "VOUCHSAFE_HTTP_ADDR",
            "--trusted-proxies",
            "--admin-trusted-proxies",
            "--tls-certificate-file",
        );
        let operators = (
            "VOUCHSAFE_ADMIN_ADDR",
            "--admin-trusted-proxies",
            "--trusted-proxies",
            "--admin-tls-certificate-file",
        );
        for (flag, address, (setting, list, other_list, certificate)) in [
            ("--http-addr", "0.0.0.0:8080", partners),
            ("--http-addr", "[::]:8080", partners),
            ("--http-addr", "203.0.113.7:8080", partners),
            ("--admin-addr", "0.0.0.0:8081", operators),
        ] {
            let listening = [&COMPLETE[..], &[flag, address]].concat();
            let message = complaint(&listening);
            assert!(
                message.contains(setting)
                    && message.contains("TRUSTED_PROXIES to the networks of the TLS proxies"),
                "{message}"
            );
            let behind_proxy_of_other = [&listening[..], &[other_list, "10.0.0.0/8"]].concat();
            assert_eq!(complaint(&behind_proxy_of_other), message);
            let behind_proxy = [&listening[..], &[list, "10.0.0.0/8"]].concat();
            assert_eq!(complaint(&behind_proxy), "", "{flag} {address}");
            let with_tls = [&listening[..], &[certificate, "certificate.pem"]].concat();
            assert_eq!(complaint(&with_tls), "", "{flag} {address}");
            assert_eq!(complaint(&["--environment", "sandbox", flag, address]), "");
        }
        for address in ["127.0.0.1:8080", "127.9.9.9:8080", "[::1]:8080"] {
            assert_eq!(
                complaint(&[&COMPLETE[..], &["--http-addr", address]].concat()),
                ""
            );
        }
    }
}
