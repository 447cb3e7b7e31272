//! Audit entries of security events.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::mem;
use std::time::Duration;

use tracing::warn;
use vouchsafe_security::security_event::SecurityEventReason;
use vouchsafe_store::ForgedGrant;

use super::every;
use crate::service::JobState;

/// Delay of the first audit entry about a client; a crash meanwhile loses it.
const SECURITY_EVENT_INTERVAL: Duration = Duration::from_secs(1);

/// A row without a valid HMAC has an audit entry once in this time.
const FORGED_GRANT_INTERVAL: Duration = Duration::from_hours(1);

/// Rows without a valid HMAC that have an audit entry in this time: a database user who plants more does not
/// flood the audit log.
const MAX_FORGED_GRANTS: usize = 1_000;

pub(super) async fn audit(service: &JobState) -> Infallible {
    let mut forged = ForgedGrants::default();
    every(
        SECURITY_EVENT_INTERVAL,
        "cannot write audit entries of security events",
        async || {
            forged.audit(service).await;
            let due = service.security_events.take_due(service.clock.monotonic());
            if due.is_empty() {
                return Ok(());
            }
            let written = service.store.audit_log.write_security_events(due.clone());
            Ok(written
                .await
                .inspect_err(|_| service.security_events.put_back(due))?)
        },
    )
    .await
}

/// Rows without a valid HMAC, by their audit entries.
#[derive(Default)]
struct ForgedGrants {
    /// Grants whose event is not written yet.
    waiting: BTreeSet<ForgedGrant>,
    /// When the last one of each was written, on the monotonic clock.
    written: BTreeMap<ForgedGrant, Duration>,
}

impl ForgedGrants {
    async fn audit(&mut self, service: &JobState) {
        let now = service.clock.monotonic();
        self.written.retain(|_, at| now - *at < FORGED_GRANT_INTERVAL);
        for row in service.store.grants.take_forged() {
            let metrics = service.metrics.security_events();
            metrics.record(SecurityEventReason::ForgedGrant);
            let has_place = self.waiting.len() + self.written.len() < MAX_FORGED_GRANTS;
            if has_place && !self.written.contains_key(&row) {
                self.waiting.insert(row);
            }
        }
        if self.waiting.is_empty() {
            return;
        }
        let written = service.store.audit_log.write_forged_grants(self.waiting.clone());
        match written.await {
            Ok(()) => self
                .written
                .extend(mem::take(&mut self.waiting).into_iter().map(|row| (row, now))),
            Err(error) => {
                warn!(error.message = %error, "cannot write audit entries of rows without a valid HMAC")
            }
        }
    }
}
