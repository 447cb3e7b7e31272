//! Caps of partners without their own.

use clap::Args;
use vouchsafe_domain::partner::approval_rule::Thresholds;
use vouchsafe_domain::partner::caps::PartnerCaps;

/// Caps of each partner, unless the partner has its own.
#[derive(Debug, Clone, Args)]
pub struct CapSettings {
    /// Maximum number of pending orders of a partner [default: none].
    #[arg(long, env = "VOUCHSAFE_MAX_PENDING_ORDERS", value_name = "ORDERS")]
    max_pending_orders: Option<u32>,

    /// Maximum amount of the pending orders of a partner by currency, e.g. USD=1000,JPY=100000 [default:
    /// none].
    #[arg(long, env = "VOUCHSAFE_MAX_PENDING_AMOUNT", value_name = "AMOUNTS")]
    max_pending_amount: Option<Thresholds>,

    /// Maximum number of orders that a partner cancels on a day in UTC [default: none].
    #[arg(long, env = "VOUCHSAFE_MAX_CANCELLATIONS_PER_DAY", value_name = "ORDERS")]
    max_cancellations_per_day: Option<u32>,
}

impl CapSettings {
    /// The caps; `None` without any.
    #[must_use]
    pub fn caps(&self) -> Option<PartnerCaps> {
        let caps = PartnerCaps {
            pending_orders: self.max_pending_orders,
            pending_amount: self.max_pending_amount.clone().unwrap_or_default(),
            cancellations_per_day: self.max_cancellations_per_day,
            ..PartnerCaps::default()
        };
        (caps != PartnerCaps::default()).then_some(caps)
    }
}
