//! Operators at startup: the sandbox's admin, and a warning if nobody can sign in to production.

use std::path::Path;

use anyhow::Context as _;
use tracing::warn;
use vouchsafe_domain::operator::OperatorName;
use vouchsafe_security::environment::Environment;
use vouchsafe_store::operators::NewOperatorToken;
use vouchsafe_store::{AuditActor, PgStore};

use crate::secrets;
use crate::settings::ServeSettings;

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
    };
    let stored = store.operators.ensure_token(token, AuditActor::service());
    stored.await.context("store the operator token of the sandbox")
}
