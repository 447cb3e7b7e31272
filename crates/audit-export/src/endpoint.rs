//! Export to an HTTP endpoint: a signed POST per batch, from one node at a time.
//!
//! Any 2xx status accepts a batch. After another status, or none, the same entries are sent again: an
//! endpoint may receive an entry more than once, and recognises it by its `audit_id`, a checkpoint by its
//! `number`.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use reqwest::Client;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE};
use vouchsafe_domain::audit_export::{CheckpointRecord, ExportLine, to_ndjson};
use vouchsafe_domain::clock::Clock;
use vouchsafe_http_client::{client_builder, root_cause};
use vouchsafe_security::webhook_signature::sign;
use vouchsafe_store::{AuditLog, ExportContent, ExportLease, ExportLeaseOutcome};

use super::ExportOutcome;
use super::settings::EndpointSettings;

/// Shorter than the lease.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Time after a failure until any node tries again.
const RETRY_DELAY: Duration = Duration::from_secs(10);

/// Digits of the last checkpoint's hash in the id of a request.
const ID_DIGITS: usize = 32;

pub(crate) struct EndpointExport {
    audit_log: AuditLog,
    /// Keyed hash of the URL.
    id: String,
    settings: EndpointSettings,
    client: Client,
    clock: Arc<dyn Clock>,
}

impl EndpointExport {
    /// # Errors
    /// If no HTTP client can be created.
    pub(crate) fn new(
        audit_log: AuditLog,
        id: String,
        settings: EndpointSettings,
        clock: Arc<dyn Clock>,
    ) -> anyhow::Result<Self> {
        let client = client_builder(settings.url.as_str())?
            .timeout(TIMEOUT)
            .user_agent(concat!("Vouchsafe-Audit/", env!("CARGO_PKG_VERSION")));
        Ok(Self {
            audit_log,
            id,
            settings,
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
    pub(crate) async fn export(&self) -> anyhow::Result<ExportOutcome> {
        let mut lease = match self.audit_log.lease_export(&self.id).await? {
            ExportLeaseOutcome::Leased(lease) => lease,
            ExportLeaseOutcome::Complete => return Ok(ExportOutcome::Complete),
            ExportLeaseOutcome::LeasedByOther => return Ok(ExportOutcome::LeasedByOther),
            ExportLeaseOutcome::Beyond { position, newest } => {
                return Ok(ExportOutcome::Mismatch(format!(
                    "the endpoint has accepted checkpoint {position}, but the newest of the database is \
                     {newest}: a database user changed the table audit_exports or removed checkpoints"
                )));
            }
        };
        let exported = self.export_batches(&mut lease).await;
        let delay = if exported.is_ok() {
            Duration::ZERO
        } else {
            RETRY_DELAY
        };
        let released = self.audit_log.release_export(lease, delay).await;
        let outcome = exported?;
        released?;
        Ok(outcome)
    }

    async fn export_batches(&self, lease: &mut ExportLease) -> anyhow::Result<ExportOutcome> {
        loop {
            let position = lease.position();
            let lines = self.audit_log.read_export_batch(position, ExportContent::Entries);
            let lines = lines.await?;
            let Some(last) = lines.last().and_then(ExportLine::checkpoint) else {
                return Ok(ExportOutcome::Complete);
            };
            self.post(position + 1, last, &lines).await?;
            if !self.audit_log.confirm_export(lease, last.number).await? {
                return Ok(ExportOutcome::LeasedByOther);
            }
        }
    }

    async fn post(&self, first: i64, last: &CheckpointRecord, lines: &[ExportLine]) -> anyhow::Result<()> {
        let EndpointSettings {
            url,
            secret,
            authorization,
        } = &self.settings;
        let body = to_ndjson(lines)?;
        // After a restore, another checkpoint may have the same number.
        let hash = last.hash.get(..ID_DIGITS).unwrap_or(&last.hash);
        let id = format!("audit_{first}_{}_{hash}", last.number);
        let at = self.clock.now().unix_timestamp();
        let headers = sign(&id, at, &body, &[secret.key()]);
        let mut request = self
            .client
            .post(url.clone())
            .header(CONTENT_TYPE, "application/x-ndjson")
            .header("webhook-id", id)
            .header("webhook-timestamp", headers.timestamp)
            .header("webhook-signature", headers.webhook_signature)
            .header("X-Signature", headers.x_signature)
            .body(body);
        if let Some(authorization) = authorization {
            request = request.header(AUTHORIZATION, authorization.clone());
        }
        // The URL may contain a password: errors show its origin.
        let origin = url.origin().ascii_serialization();
        let response = match request.send().await {
            Ok(response) => response,
            Err(error) => bail!("no response from {origin}: {}", root_cause(&error.without_url())),
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
