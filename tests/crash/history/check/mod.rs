//! Consistency checker for recorded operation histories. O(n log n); returns a summary or the smallest set of
//! operations that violates a rule.
//!
//! | Rule | Violation |
//! |---|---|
//! | one stored response per key, byte for byte | [`Violation::ResponsesDiffer`] |
//! | each unknown outcome becomes definite under its key | [`Violation::Unsettled`] |
//! | one order belongs to one key | [`Violation::OrderUnderTwoKeys`] |
//! | each acknowledged order exists and was read back | [`Violation::OrderLost`], [`Violation::NotReadBack`] |
//! | its total and vouchers do not change | [`Violation::OrderChanged`] |
//! | a voucher belongs to one order | [`Violation::DuplicateVoucher`] |
//! | a code belongs to one voucher and does not change | [`Violation::DuplicateCode`], [`Violation::CodeChanged`] |
//! | returned codes belong to the order's vouchers | [`Violation::ForeignCodes`] |
//! | a 2xx response has the fields of the API contract | [`Violation::MalformedResponse`] |
//!
//! The service stores 2xx responses and two refusals (funds, inventory) under a key. Other 409s, 429 and 5xx
//! mean "not now" and may precede, separate or follow the stored response.

mod orders;
mod responses;
mod violation;
mod vouchers;

#[cfg(test)]
mod history_builder;
#[cfg(test)]
mod tests;

use super::{Call, History, Op};

pub(crate) use violation::Violation;

/// Contents of a history without violations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub(crate) struct HistorySummary {
    pub(crate) operations: usize,
    pub(crate) keys: usize,
    /// Order calls with unknown outcome that a repetition under the key settled.
    pub(crate) settled_by_replay: usize,
    /// Distinct orders with a 2xx response.
    pub(crate) acknowledged_orders: usize,
    /// Reads that returned an acknowledged order unchanged.
    pub(crate) read_backs: usize,
    pub(crate) vouchers: usize,
    pub(crate) codes: usize,
}

/// Checks all rules of the module table.
///
/// # Errors
/// The first violation, with the operations that show it.
pub(crate) fn check(history: &History) -> Result<HistorySummary, Violation> {
    check_well_formed(history)?;
    let keys = responses::group_by_key(history);
    let settled_by_replay = responses::check(&keys)?;
    let acknowledged = orders::collect_acknowledged(&keys)?;
    let (vouchers, codes) = vouchers::check(history, &acknowledged)?;
    let read_backs = orders::check_read_backs(history, &acknowledged)?;
    Ok(HistorySummary {
        operations: history.ops().count(),
        keys: keys.len(),
        settled_by_replay,
        acknowledged_orders: acknowledged.len(),
        read_backs,
        vouchers,
        codes,
    })
}

fn check_well_formed(history: &History) -> Result<(), Violation> {
    let has_fields = |op: &Op| {
        op.ok().is_none_or(|event| match op.invoke.f {
            Call::Order | Call::GetOrder => event.order.is_some() && event.order_id.is_some(),
            Call::Codes => event.codes.is_some(),
        })
    };
    match history.ops().find(|op| !has_fields(op)) {
        Some(op) => Err(Violation::MalformedResponse {
            op_id: op.invoke.op_id,
        }),
        None => Ok(()),
    }
}
