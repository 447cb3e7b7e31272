//! Audit entries of security events.

use std::collections::BTreeSet;
use std::time::Duration;

use tracing::warn;
use vouchsafe_security::security_event::SecurityEventReason;
use vouchsafe_store::ForgedGrant;

use super::ticker;
use crate::service::Service;

/// Delay of the first audit entry about a client; a crash meanwhile loses it.
const SECURITY_EVENT_INTERVAL: Duration = Duration::from_secs(1);

pub(super) async fn audit(service: &Service) {
    let mut tick = ticker(SECURITY_EVENT_INTERVAL);
    let mut forged = BTreeSet::new();
    loop {
        tick.tick().await;
        audit_forged_grants(service, &mut forged).await;
        let due = service.security_events.take_due(service.clock.monotonic());
        if due.is_empty() {
            continue;
        }
        let written = service.job_store.audit_log.write_security_events(due.clone());
        if let Err(error) = written.await {
            warn!(error.message = %error, "cannot write audit entries of security events");
            service.security_events.put_back(due);
        }
    }
}

/// Keeps in `forged` what could not be written.
async fn audit_forged_grants(service: &Service, forged: &mut BTreeSet<ForgedGrant>) {
    for row in service.job_store.grants.take_forged() {
        service
            .metrics
            .security_events()
            .record(SecurityEventReason::ForgedGrant);
        forged.insert(row);
    }
    if forged.is_empty() {
        return;
    }
    match service
        .job_store
        .audit_log
        .write_forged_grants(forged.clone())
        .await
    {
        Ok(()) => forged.clear(),
        Err(error) => {
            warn!(error.message = %error, "cannot write audit entries of rows without a valid HMAC")
        }
    }
}
