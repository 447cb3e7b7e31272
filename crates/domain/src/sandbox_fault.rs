//! Faults that a partner requests in the sandbox: a registry in memory, bounded in count and time, by
//! partner.

use std::collections::HashMap;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use time::OffsetDateTime;

use crate::ids::PartnerId;
use crate::labels::labels;

/// Most occurrences of a requested fault: an afternoon of tests, and few enough to forget none of them.
pub const MAX_FAULT_COUNT: u32 = 100;

/// Longest validity of a requested fault: a test run.
pub const MAX_FAULT_TTL: Duration = Duration::from_secs(3_600);

/// Longest delay of a response. Shorter than the drain of a shutdown, which waits for the response.
pub const MAX_FAULT_DELAY: Duration = Duration::from_secs(20);

labels! {
    /// A fault of the service or of the mock vendor.
    #[derive(PartialOrd, Ord)]
    pub enum FaultKind: "SCREAMING_SNAKE_CASE" as SandboxFaultKind,
        "Kind of fault: `SERVICE_UNAVAILABLE` (`POST /orders` responds with 503 and executes nothing), `LOST_RESPONSE` (an order \
         commits, and the connection breaks before the response), `SLOW_RESPONSE` (the response to an order that was executed \
         comes late), `VENDOR_OUT_OF_STOCK` (the mock vendor delivers nothing more for an order item), `VENDOR_TIMEOUT` (a \
         request to the mock vendor times out and is repeated)." {
        /// 503 instead of an order.
        ServiceUnavailable,
        /// No response to an order that was placed.
        LostResponse,
        /// A late response to an order.
        SlowResponse,
        /// The mock vendor delivers nothing more for a purchase.
        VendorOutOfStock,
        /// A request to the mock vendor times out.
        VendorTimeout,
    }
}

/// A requested fault that has occurrences left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SandboxFault {
    pub kind: FaultKind,
    /// Occurrences left.
    pub remaining: u32,
    /// Set for [`FaultKind::SlowResponse`].
    pub delay: Option<Duration>,
    pub expires_at: OffsetDateTime,
}

/// The requested faults of all partners, at most one of each kind for each.
#[derive(Debug, Default)]
pub struct SandboxFaults(Mutex<HashMap<PartnerId, Vec<SandboxFault>>>);

impl SandboxFaults {
    /// Requests a fault, instead of an earlier one of the same kind.
    pub fn put(&self, partner_id: PartnerId, fault: SandboxFault) {
        let mut faults = self.lock();
        let faults = faults.entry(partner_id).or_default();
        faults.retain(|other| other.kind != fault.kind);
        faults.push(fault);
    }

    /// The faults that can still occur, sorted by kind.
    pub fn list(&self, partner_id: PartnerId, now: OffsetDateTime) -> Vec<SandboxFault> {
        let faults = self.lock();
        let own = faults.get(&partner_id).into_iter().flatten();
        let mut own: Vec<_> = own.filter(|fault| fault.expires_at > now).cloned().collect();
        own.sort_by_key(|fault| fault.kind);
        own
    }

    pub fn clear(&self, partner_id: PartnerId) {
        self.lock().remove(&partner_id);
    }

    /// Takes an occurrence of a fault, if the partner has requested it.
    pub fn take(&self, partner_id: PartnerId, kind: FaultKind, now: OffsetDateTime) -> Option<SandboxFault> {
        let mut faults = self.lock();
        let own = faults.get_mut(&partner_id)?;
        own.retain(|fault| fault.expires_at > now);
        let fault = own.iter_mut().find(|fault| fault.kind == kind)?;
        fault.remaining -= 1;
        let taken = fault.clone();
        own.retain(|fault| fault.remaining > 0);
        Some(taken)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<PartnerId, Vec<SandboxFault>>> {
        self.0.lock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{NOW, partner};

    fn fault(kind: FaultKind, remaining: u32) -> SandboxFault {
        SandboxFault {
            kind,
            remaining,
            delay: None,
            expires_at: NOW + time::Duration::MINUTE,
        }
    }

    #[test]
    fn fault_occurs_as_often_as_requested_and_for_its_partner_only() {
        let faults = SandboxFaults::default();
        faults.put(partner(1), fault(FaultKind::LostResponse, 2));
        faults.put(partner(1), fault(FaultKind::ServiceUnavailable, 9));
        faults.put(partner(1), fault(FaultKind::ServiceUnavailable, 1));
        let take = |number, kind| {
            faults
                .take(partner(number), kind, NOW)
                .map(|fault| fault.remaining)
        };
        assert_eq!(take(2, FaultKind::LostResponse), None);
        assert_eq!(take(1, FaultKind::SlowResponse), None);
        assert_eq!(
            [(); 3].map(|()| take(1, FaultKind::LostResponse)),
            [Some(1), Some(0), None]
        );
        let kinds = faults.list(partner(1), NOW);
        assert_eq!(
            kinds,
            [fault(FaultKind::ServiceUnavailable, 1)],
            "the later request counts"
        );
        faults.clear(partner(1));
        assert_eq!(faults.list(partner(1), NOW), []);
    }

    #[test]
    fn fault_does_not_occur_after_its_expiry() {
        let faults = SandboxFaults::default();
        faults.put(partner(1), fault(FaultKind::VendorTimeout, 5));
        let end = NOW + time::Duration::MINUTE;
        assert_eq!(
            faults.list(partner(1), end - time::Duration::MICROSECOND).len(),
            1
        );
        assert_eq!(faults.list(partner(1), end), []);
        assert_eq!(faults.take(partner(1), FaultKind::VendorTimeout, end), None);
    }
}
