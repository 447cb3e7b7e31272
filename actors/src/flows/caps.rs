//! Caps of a partner in a decision. The commit verifies them; a decision reads the counters once a cap was
//! reached.

use std::sync::Arc;

use time::OffsetDateTime;
use vouchsafe_domain::cap::{CapCheck, CapExceeded};
use vouchsafe_domain::ids::{CredentialId, PartnerId};
use vouchsafe_domain::money::Money;
use vouchsafe_domain::partner::caps::PartnerCaps;

use super::idempotent::FlowError;
use crate::engine::Engine;
use crate::supervisor::DecisionDeadline;

/// Reads the counters of the checks; no statement without a check.
pub(super) async fn usage(
    engine: &Engine,
    partner_id: PartnerId,
    checks: &[CapCheck],
    deadline: &DecisionDeadline,
) -> Result<Vec<i64>, FlowError> {
    if checks.is_empty() {
        return Ok(Vec::new());
    }
    match deadline
        .with_timeout(engine.store.cap_usage(partner_id, checks.to_vec()))
        .await?
    {
        Ok(used) => Ok(used),
        Err(error) => {
            tracing::warn!(error.message = %error, "cannot read counters of caps");
            Err(FlowError::Unavailable)
        }
    }
}

/// The caps that apply to an order.
#[derive(Debug, Clone)]
pub struct OrderCaps {
    pub caps: Arc<PartnerCaps>,
    /// The credential whose spend the order counts against, together with those that came from it by
    /// rotation.
    pub family_id: CredentialId,
}

/// What an order counts against, and the state of the order rate if it was read.
#[derive(Debug, Default)]
pub(super) struct OrderChecks {
    spend: Vec<CapCheck>,
    rate: Vec<CapCheck>,
    pending: Vec<CapCheck>,
    is_rate_exceeded: bool,
}

/// How an order is accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Acceptance {
    Delivered,
    /// It waits for vouchers.
    Pending,
    /// It waits for an operator.
    UnderApproval,
}

impl OrderChecks {
    /// What an order counts against; no counter is read yet.
    pub(super) fn new(OrderCaps { caps, family_id }: &OrderCaps, total: Money, at: OffsetDateTime) -> Self {
        Self {
            spend: caps.spend_checks(total, *family_id, at),
            rate: caps.rate_checks(total),
            pending: caps.pending_checks(total),
            is_rate_exceeded: false,
        }
    }

    /// Reads the counters of every order. `Ok(Err(_))`: a cap on spend does not permit the order.
    pub(super) async fn read(
        &mut self,
        engine: &Engine,
        partner_id: PartnerId,
        deadline: &DecisionDeadline,
    ) -> Result<Result<(), CapExceeded>, FlowError> {
        let all = [&self.spend[..], &self.rate].concat();
        let used = usage(engine, partner_id, &all, deadline).await?;
        let (used_spend, used_rate) = used
            .split_at_checked(self.spend.len())
            .ok_or(FlowError::Unavailable)?;
        self.is_rate_exceeded = CapCheck::first_exceeded(&self.rate, used_rate).is_some();
        Ok(CapCheck::first_exceeded(&self.spend, used_spend).map_or(Ok(()), Err))
    }

    /// Whether the order must wait for approval.
    pub(super) const fn is_rate_exceeded(&self) -> bool {
        self.is_rate_exceeded
    }

    /// Whether an order that is accepted so counts against caps of pending orders.
    pub(super) fn has_pending(&self, acceptance: Acceptance) -> bool {
        acceptance != Acceptance::Delivered && !self.pending.is_empty()
    }

    /// Reads the counters of pending orders. An order that is delivered at once does without.
    pub(super) async fn find_pending_exceeded(
        &self,
        engine: &Engine,
        partner_id: PartnerId,
        deadline: &DecisionDeadline,
    ) -> Result<Option<CapExceeded>, FlowError> {
        let used = usage(engine, partner_id, &self.pending, deadline).await?;
        Ok(CapCheck::first_exceeded(&self.pending, &used))
    }

    /// What the commit verifies for an order that is accepted so.
    pub(super) fn of(self, acceptance: Acceptance) -> Vec<CapCheck> {
        let mut checks = self.spend;
        // An order under approval is not held up again, but those after it count it.
        let bounded = acceptance != Acceptance::UnderApproval;
        checks.extend(self.rate.into_iter().map(|check| CapCheck {
            cap: check.cap.filter(|_| bounded),
            ..check
        }));
        if acceptance != Acceptance::Delivered {
            checks.extend(self.pending);
        }
        checks
    }
}
