//! Operators at startup: the sandbox's admin, and a warning if no operator can sign in to production.

use std::path::Path;

use anyhow::Context as _;
use tracing::warn;
use vouchsafe_domain::operator::OperatorName;
use vouchsafe_security::environment::Environment;
use vouchsafe_sign_in::oidc::OidcProvider;
use vouchsafe_store::operators::NewOperatorToken;
use vouchsafe_store::{AuditActor, PgStore};

use crate::secrets;
use crate::settings::ServeSettings;

/// The identity provider of the settings, which is first called by a sign-in.
///
/// # Errors
/// If the settings are incomplete or invalid.
pub(super) fn identity_provider(settings: &ServeSettings) -> anyhow::Result<Option<Box<OidcProvider>>> {
    let Some(provider) = settings.oidc.provider()? else {
        return Ok(None);
    };
    let provider = OidcProvider::new(provider, &settings.console_url());
    let provider = provider.map_err(|error| anyhow::anyhow!(error))?;
    Ok(Some(Box::new(provider)))
}

/// Stores the sandbox's token, unless the settings have one.
///
/// # Errors
/// If the database or the token's file fails.
pub(super) async fn prepare(
    store: &PgStore,
    settings: &ServeSettings,
    data_dir: &Path,
) -> anyhow::Result<()> {
    if settings.operator_token.is_some() {
        return Ok(());
    }
    if settings.environment == Environment::Production {
        if !store.operators.has_live_tokens().await? {
            warn!("no operator can sign in; create one with `vouchsafe operator create NAME --admin`");
        }
        return Ok(());
    }
    // The file comes first: a token in the database whose text is lost would be of no use.
    let token = NewOperatorToken {
        operator: OperatorName::built_in_admin(),
        hash: secrets::sandbox_token(data_dir)?,
        expires_at: None,
        session_id: None,
        activation: None,
    };
    let stored = store.operators.ensure_token(token, AuditActor::service());
    stored.await.context("store the operator token of the sandbox")
}
