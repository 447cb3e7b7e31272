//! Settings of the audit export.

use std::path::PathBuf;

use anyhow::{Context as _, anyhow, bail};
use clap::Args;
use reqwest::Url;
use reqwest::header::HeaderValue;
use secrecy::SecretString;
use vouchsafe_security::secret::expose_setting;
use vouchsafe_security::secure_url::is_secure;
use vouchsafe_security::vault::seal::WebhookSecret;

const HOW_TO_CREATE: &str = "create one with openssl rand -base64 32";

/// Settings of the audit export.
#[derive(Debug, Clone, Args)]
pub struct AuditExportArgs {
    /// File to which audit checkpoints are exported, one per node [default: none].
    #[arg(long, env = "VOUCHSAFE_CHECKPOINT_FILE", value_name = "FILE")]
    checkpoint_file: Option<PathBuf>,

    /// File to which audit entries and their checkpoints are exported, one per node [default: none].
    #[arg(long, env = "VOUCHSAFE_AUDIT_EXPORT_FILE", value_name = "FILE")]
    audit_export_file: Option<PathBuf>,

    /// URL to which audit entries and their checkpoints are posted: https, or http on loopback [default:
    /// none].
    // Parsed later: clap's errors quote the value, which may be a URL with a password.
    #[arg(
        long,
        env = "VOUCHSAFE_AUDIT_EXPORT_URL",
        hide_env_values = true,
        value_name = "URL"
    )]
    audit_export_url: Option<SecretString>,

    /// Secret that signs what is posted: at least 24 bytes in base64; the prefix whsec_ is optional.
    #[arg(
        long,
        env = "VOUCHSAFE_AUDIT_EXPORT_SECRET",
        hide_env_values = true,
        value_name = "SECRET"
    )]
    audit_export_secret: Option<SecretString>,

    /// Value of the header Authorization of what is posted, such as `Bearer TOKEN` [default: none].
    #[arg(
        long,
        env = "VOUCHSAFE_AUDIT_EXPORT_AUTHORIZATION",
        hide_env_values = true,
        value_name = "VALUE"
    )]
    audit_export_authorization: Option<SecretString>,
}

/// An HTTP endpoint of the export.
pub(crate) struct EndpointSettings {
    pub(crate) url: Url,
    pub(crate) secret: WebhookSecret,
    pub(crate) authorization: Option<HeaderValue>,
}

impl EndpointSettings {
    /// The URL without the parts that may contain a credential, which can be replaced: it identifies the
    /// endpoint.
    pub(crate) fn address(&self) -> String {
        format!("{}{}", self.url.origin().ascii_serialization(), self.url.path())
    }
}

/// The targets that the settings name.
pub struct ExportTargets {
    pub(crate) checkpoint_file: Option<PathBuf>,
    pub(crate) entry_file: Option<PathBuf>,
    pub(crate) endpoint: Option<EndpointSettings>,
}

impl AuditExportArgs {
    /// The targets of the export. Opens no file and sends no request.
    ///
    /// # Errors
    /// If a value is invalid, one of URL and secret is missing, or two exports have the same file.
    pub fn targets(&self) -> anyhow::Result<ExportTargets> {
        let (checkpoint_file, entry_file) = (&self.checkpoint_file, &self.audit_export_file);
        if checkpoint_file.is_some() && checkpoint_file == entry_file {
            bail!(
                "VOUCHSAFE_CHECKPOINT_FILE and VOUCHSAFE_AUDIT_EXPORT_FILE name the same file; each export needs its own"
            );
        }
        Ok(ExportTargets {
            checkpoint_file: checkpoint_file.clone(),
            entry_file: entry_file.clone(),
            endpoint: self.endpoint()?,
        })
    }

    /// # Errors
    /// If a value is invalid, or one of URL and secret is missing. The error has no value.
    fn endpoint(&self) -> anyhow::Result<Option<EndpointSettings>> {
        let secret = expose_setting(self.audit_export_secret.as_ref());
        let authorization = expose_setting(self.audit_export_authorization.as_ref());
        let (url, secret) = match (expose_setting(self.audit_export_url.as_ref()), secret) {
            (Some(url), Some(secret)) => (url, secret),
            (None, None) if authorization.is_none() => return Ok(None),
            (Some(_), None) => bail!(
                "VOUCHSAFE_AUDIT_EXPORT_URL requires VOUCHSAFE_AUDIT_EXPORT_SECRET_FILE, a secret that \
                 signs what is posted; {HOW_TO_CREATE}"
            ),
            (None, _) => {
                bail!(
                    "VOUCHSAFE_AUDIT_EXPORT_SECRET and VOUCHSAFE_AUDIT_EXPORT_AUTHORIZATION require \
                     VOUCHSAFE_AUDIT_EXPORT_URL, to which the audit log is posted"
                )
            }
        };
        let url = Url::parse(url).ok().filter(is_secure);
        let url = url.context(
            "VOUCHSAFE_AUDIT_EXPORT_URL: expected an https URL such as \
             https://collector.example/vouchsafe; http is permitted to this machine only",
        )?;
        let Some(secret) = WebhookSecret::parse(secret) else {
            bail!("VOUCHSAFE_AUDIT_EXPORT_SECRET: expected at least 24 bytes in base64; {HOW_TO_CREATE}");
        };
        let has_user = !url.username().is_empty() || url.password().is_some();
        if has_user && authorization.is_some() {
            bail!(
                "VOUCHSAFE_AUDIT_EXPORT_AUTHORIZATION: VOUCHSAFE_AUDIT_EXPORT_URL has a user or a password \
                 already; remove one of them"
            );
        }
        let authorization = authorization.map(HeaderValue::from_str).transpose();
        let mut authorization = authorization.map_err(|_| {
            anyhow!(
                "VOUCHSAFE_AUDIT_EXPORT_AUTHORIZATION: expected the value of a header, such as Bearer TOKEN"
            )
        })?;
        if let Some(authorization) = &mut authorization {
            authorization.set_sensitive(true);
        }
        Ok(Some(EndpointSettings {
            url,
            secret,
            authorization,
        }))
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct TestCommand {
        #[command(flatten)]
        export: AuditExportArgs,
    }

    fn parse(line: &str) -> AuditExportArgs {
        let line = line.replace("SECRET", &"AQEB".repeat(8));
        let arguments = ["test"].into_iter().chain(line.split_whitespace());
        TestCommand::try_parse_from(arguments).unwrap().export
    }

    #[test]
    fn each_export_has_a_file_of_its_own() {
        let one = parse("--audit-export-file a").targets().unwrap();
        assert_eq!((one.checkpoint_file, one.entry_file), (None, Some("a".into())));
        let same = parse("--checkpoint-file a --audit-export-file a").targets();
        assert!(same.is_err());
    }

    #[test]
    fn endpoint_is_secure_and_has_a_secret() {
        for line in [
            "--audit-export-url https://user:password@collector.example/a?b=c --audit-export-secret SECRET",
            "--audit-export-url http://127.0.0.1:9000 --audit-export-secret whsec_SECRET",
        ] {
            let settings = parse(line).endpoint().unwrap().unwrap();
            assert_eq!(settings.secret.key(), [1; 24], "{line}");
            assert!(!settings.address().contains("password") && !settings.address().contains("b=c"));
        }
        for line in ["", "--audit-export-url= --audit-export-secret="] {
            assert!(parse(line).endpoint().unwrap().is_none(), "{line}");
        }
    }

    #[test]
    fn invalid_settings_are_refused_without_their_values() {
        for (line, expected) in [
            (
                "--audit-export-authorization hidden",
                "require VOUCHSAFE_AUDIT_EXPORT_URL",
            ),
            (
                "--audit-export-url https://hidden@a.example --audit-export-secret SECRET --audit-export-authorization hidden",
                "remove one of them",
            ),
            (
                "--audit-export-url https://a.example",
                "VOUCHSAFE_AUDIT_EXPORT_SECRET_FILE",
            ),
            (
                "--audit-export-secret SECRET",
                "require VOUCHSAFE_AUDIT_EXPORT_URL",
            ),
            (
                "--audit-export-url http://u:hidden@a.example --audit-export-secret SECRET",
                "expected an https URL",
            ),
            (
                "--audit-export-url hidden --audit-export-secret SECRET",
                "expected an https URL",
            ),
            (
                "--audit-export-url https://a.example --audit-export-secret hidden",
                "at least 24 bytes",
            ),
            (
                "--audit-export-url https://a.example --audit-export-secret aGlkZGVu",
                "at least 24 bytes",
            ),
        ] {
            let error = parse(line).endpoint().err().unwrap();
            let error = format!("{error:#}");
            assert!(error.contains(expected), "{line}: {error}");
            assert!(
                !error.contains("hidden") && !error.contains("aGlkZGVu"),
                "{error}"
            );
        }
    }
}
