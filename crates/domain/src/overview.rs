//! Numbers of objects that wait for vendors, for a decision or for a repair.

use serde::Serialize;

/// Numbers of objects that wait.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct OpenWork {
    /// Orders whose vouchers are being bought (`pending_reason` `VENDOR`).
    pub orders_at_vendors: i64,
    /// Orders that wait for `approve` or `reject` (`pending_reason` `APPROVAL`).
    pub orders_to_approve: i64,
    /// Payouts that wait for `pay`, `reject` or `fail`.
    pub payouts_to_decide: i64,
    /// Changes that wait for a second operator.
    pub requests_to_confirm: i64,
    /// Purchases whose last request the vendor refused; an operator can end them.
    pub purchases_to_end: i64,
    /// Differences to vendors' records that are not resolved.
    pub drifts_open: i64,
    /// Webhook endpoints that fail.
    pub webhooks_failing: i64,
    /// Webhook endpoints that are disabled because they responded with 410: their events wait.
    pub webhooks_gone: i64,
    /// Nodes with a valid lease.
    pub nodes_live: i64,
    /// Nodes whose lease has expired while they own stock.
    pub nodes_lost: i64,
}
