//! Invariants of endpoints and their deliveries.

use super::Findings;
use crate::memory::endpoint::{Delivery, Endpoint};
use crate::memory::tables::{DbTime, Tables};
use crate::rows::RowState;

pub(super) fn check(tables: &Tables, now: DbTime, findings: &mut Findings) {
    for endpoint in tables.endpoints.values() {
        let newest = tables.feed(endpoint.partner_id).newest();
        findings.check("webhook.cursor", endpoint.status.cursor <= newest, || {
            format!("{:?} of {newest} events", endpoint.status)
        });
        let is_due = endpoint.due_at.is_some() || !endpoint.deliveries.values().any(Delivery::is_open);
        findings.check("webhook.due", is_due, || {
            format!("deliveries wait: {:?}", endpoint.status)
        });
        let backs_off = (endpoint.status.failures > 0) == (endpoint.backoff_step > 0);
        findings.check("webhook.backoff", backs_off, || {
            format!("step {}: {:?}", endpoint.backoff_step, endpoint.status)
        });
        check_deliveries(endpoint, now, findings);
    }
}

/// Of the open deliveries of an order, all but the first are blocked.
fn check_deliveries(endpoint: &Endpoint, now: DbTime, findings: &mut Findings) {
    for (number, delivery) in &endpoint.deliveries {
        let mut earlier = endpoint.deliveries.range(..number);
        let has_open_predecessor =
            earlier.any(|(_, other)| other.order_id == delivery.order_id && other.is_open());
        let sequential =
            !delivery.is_open() || has_open_predecessor == (delivery.row.state == RowState::Blocked);
        findings.check("delivery.sequence", sequential, || {
            format!("{number}: {delivery:?}")
        });
        let expired = delivery.row.state != RowState::Failed || delivery.expires_at <= now;
        findings.check("delivery.expiry", expired, || format!("{number}: {delivery:?}"));
    }
}
