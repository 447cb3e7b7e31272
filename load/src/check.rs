//! Did the service keep its word over a whole history? A pure check, O(n log n), that ends with a summary or with
//! the smallest set of operations that shows a broken rule.
//!
//! | Rule | Broken by |
//! |---|---|
//! | one key, one kept answer, byte for byte | [`Violation::AnswersDiffer`] |
//! | every unknown outcome became definite by its key | [`Violation::Unsettled`] |
//! | one order answers one key | [`Violation::OrderUnderTwoKeys`] |
//! | an acknowledged order is there afterwards, and was looked for | [`Violation::Lost`], [`Violation::NotReadBack`] |
//! | it is there with the same total and vouchers | [`Violation::OrderChanged`] |
//! | a voucher belongs to one order | [`Violation::VoucherTwice`] |
//! | a code belongs to one voucher, and stays | [`Violation::CodeTwice`], [`Violation::CodeChanged`] |
//! | the codes handed out are those of the order's vouchers | [`Violation::CodesOfOthers`] |
//! | a 2xx answer is what the contract says | [`Violation::Unreadable`] |
//!
//! Kept answers are 2xx and the two refusals that the service makes durable (funds, inventory). 409 otherwise, 429
//! and 5xx may stand before, between and after them: they say "not now".

mod responses;
mod orders;
mod violation;
mod vouchers;

#[cfg(test)]
mod history_builder;
#[cfg(test)]
mod tests;

use crate::history::{Call, History, Op};

pub use violation::Violation;

/// What a clean history contained.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct HistorySummary {
    pub operations: usize,
    pub keys: usize,
    /// Order calls whose own outcome stayed unknown and was settled by their key.
    pub settled_by_replay: usize,
    /// Distinct orders acknowledged with 2xx.
    pub acknowledged_orders: usize,
    /// Reads that found an acknowledged order as it was.
    pub read_backs: usize,
    pub vouchers: usize,
    pub codes: usize,
}

/// Checks every rule of the table above.
///
/// # Errors
/// The first broken rule, with the operations that show it.
pub fn check(history: &History) -> Result<HistorySummary, Violation> {
    readable(history)?;
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

fn readable(history: &History) -> Result<(), Violation> {
    let has_facts = |op: &Op| {
        op.ok().is_none_or(|event| match op.invoke.f {
            Call::Order | Call::GetOrder => event.order.is_some() && event.order_id.is_some(),
            Call::Codes => event.codes.is_some(),
        })
    };
    match history.ops().find(|op| !has_facts(op)) {
        Some(op) => Err(Violation::MalformedResponse {
            op_id: op.invoke.op_id,
        }),
        None => Ok(()),
    }
}
