//! Background jobs with dependencies of the service.

use std::sync::Arc;

use vouchsafe_procurement::reconciliation::job::ReconciliationJob;
use vouchsafe_webhooks::Poller;

use crate::service::JobState;

pub(super) fn reconciliation(service: &JobState) -> ReconciliationJob {
    ReconciliationJob {
        reconciliations: service.store.reconciliations.clone(),
        purchases: service.store.purchases.clone(),
        stock: service.store.stock.clone(),
        vendors: service.store.vendors.clone(),
        catalogue: Arc::clone(&service.catalogue),
        network: service.vendor_network,
        keyring: Arc::clone(&service.keyring),
        clock: Arc::clone(&service.clock),
        metrics: service.metrics.vendors(),
    }
}

pub(super) fn endpoint_poller(service: &JobState) -> Poller<'_> {
    Poller {
        node: &service.node,
        deliveries: &service.deliveries,
        commit_notifier: &service.engine.commit_notifier,
        metrics: service.metrics.endpoints(),
    }
}
