//! Export to an HTTP endpoint: a signed POST per batch, from one node at a time.
//!
//! Any 2xx status accepts a batch. After another status, or none, the same entries are sent again: an endpoint may receive an entry more than
//! once, and recognises it by its `audit_id`, a checkpoint by its `number`.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use reqwest::header::CONTENT_TYPE;
use reqwest::{Client, Url};
use vouchsafe_domain::audit_export::{CheckpointRecord, ExportLine, to_ndjson};
use vouchsafe_domain::clock::Clock;
use vouchsafe_http_client::{client_builder, root_cause};
use vouchsafe_security::webhook_signature::sign;
use vouchsafe_store::{AuditLog, ClaimOutcome, ExportClaim, ExportContent};

use super::ExportState;
use super::settings::SigningSecret;

/// Shorter than the lease.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Until any node tries again after a failure.
const RETRY_DELAY: Duration = Duration::from_secs(10);

/// Part of the last checkpoint's hash in the id of a request: equal batches have equal ids, also after a restore others have other ids.
const ID_DIGITS: usize = 32;

pub(crate) struct EndpointExport {
    audit_log: AuditLog,
    /// Keyed hash of the URL.
    id: String,
    url: Url,
    secret: SigningSecret,
    client: Client,
    clock: Arc<dyn Clock>,
}

impl EndpointExport {
    /// # Errors
    /// If no HTTP client can be created.
    pub(crate) fn new(
        audit_log: AuditLog,
        id: String,
        url: Url,
        secret: SigningSecret,
        clock: Arc<dyn Clock>,
    ) -> anyhow::Result<Self> {
        let client = client_builder(url.as_str())?
            .timeout(TIMEOUT)
            .user_agent(concat!("Vouchsafe-Audit/", env!("CARGO_PKG_VERSION")));
        Ok(Self {
            audit_log,
            id,
            url,
            secret,
            client: client
                .build()
                .context("create the HTTP client of the audit export")?,
            clock,
        })
    }

    /// Posts all batches that the endpoint lacks.
    ///
    /// # Errors
    /// If the database fails, or the endpoint does not accept a batch.
    pub(crate) async fn export(&self) -> anyhow::Result<ExportState> {
        let mut claim = match self.audit_log.claim_export(&self.id).await? {
            ClaimOutcome::Claimed(claim) => claim,
            ClaimOutcome::Complete => return Ok(ExportState::Complete),
            ClaimOutcome::Leased => return Ok(ExportState::Elsewhere),
        };
        loop {
            let position = claim.position();
            let lines = self.audit_log.read_export_batch(position, ExportContent::Entries);
            let lines = lines.await?;
            let Some(last) = lines.last().and_then(ExportLine::checkpoint) else {
                self.audit_log.release_export(claim, Duration::ZERO).await?;
                return Ok(ExportState::Complete);
            };
            if let Err(error) = self.post(&lines, last).await {
                return Err(self.give_up(claim, error).await);
            }
            match self.audit_log.confirm_export(claim, last.number).await? {
                Some(prolonged) => claim = prolonged,
                None => return Ok(ExportState::Elsewhere),
            }
        }
    }

    async fn give_up(&self, claim: ExportClaim, error: anyhow::Error) -> anyhow::Error {
        match self.audit_log.release_export(claim, RETRY_DELAY).await {
            Ok(()) => error,
            Err(second) => error.context(format!("{second}, after:")),
        }
    }

    async fn post(&self, lines: &[ExportLine], last: &CheckpointRecord) -> anyhow::Result<()> {
        let body = to_ndjson(lines)?;
        let id = format!("audit_{}", last.hash.get(..ID_DIGITS).unwrap_or(&last.hash));
        let at = self.clock.now().unix_timestamp();
        let headers = sign(&id, at, &body, &[self.secret.key()]);
        let request = self
            .client
            .post(self.url.clone())
            .header(CONTENT_TYPE, "application/x-ndjson")
            .header("webhook-id", id)
            .header("webhook-timestamp", headers.timestamp)
            .header("webhook-signature", headers.webhook_signature)
            .header("X-Signature", headers.x_signature)
            .body(body);
        // The URL may contain a password: errors show its origin.
        let origin = self.url.origin().ascii_serialization();
        let response = match request.send().await {
            Ok(response) => response,
            Err(error) => bail!("no response from {origin}: {}", root_cause(&error)),
        };
        let status = response.status();
        if !status.is_success() {
            bail!(
                "{origin} did not accept checkpoint {}: status {}",
                last.number,
                status.as_u16()
            );
        }
        Ok(())
    }
}
