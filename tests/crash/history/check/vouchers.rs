//! Rules on vouchers and codes: each belongs to one order or voucher.

use std::collections::{BTreeMap, BTreeSet};

use super::Violation;
use super::orders::AcknowledgedOrders;
use crate::history::{CodeFact, Event, History, Op};

/// Returns the number of distinct vouchers and codes.
pub(super) fn check(history: &History, orders: &AcknowledgedOrders<'_>) -> Result<(usize, usize), Violation> {
    let mut owners = VoucherOwners::default();
    let mut codes = CodeIndex::default();
    for op in history.ops() {
        let Some(event) = op.ok() else { continue };
        let Some(order_id) = event.order_id.as_deref() else {
            continue;
        };
        if let Some(facts) = &event.order {
            owners.record(order_id, facts.vouchers.iter().map(String::as_str))?;
        }
        if let Some(facts) = &event.codes {
            owners.record(order_id, facts.iter().map(|fact| fact.voucher_id.as_str()))?;
            facts.iter().try_for_each(|fact| codes.record(fact))?;
            check_codes_match_order(orders, op, event, facts)?;
        }
    }
    Ok((owners.0.len(), codes.vouchers.len()))
}

/// Order by voucher.
#[derive(Default)]
struct VoucherOwners<'a>(BTreeMap<&'a str, &'a str>);

impl<'a> VoucherOwners<'a> {
    fn record(
        &mut self,
        order_id: &'a str,
        vouchers: impl Iterator<Item = &'a str>,
    ) -> Result<(), Violation> {
        let mut in_this_list = BTreeSet::new();
        for voucher_id in vouchers {
            let first = *self.0.entry(voucher_id).or_insert(order_id);
            if first != order_id || !in_this_list.insert(voucher_id) {
                return Err(Violation::DuplicateVoucher {
                    voucher_id: voucher_id.to_owned(),
                    first: first.to_owned(),
                    second: order_id.to_owned(),
                });
            }
        }
        Ok(())
    }
}

/// Bijection of codes and vouchers.
#[derive(Default)]
struct CodeIndex<'a> {
    vouchers: BTreeMap<&'a str, &'a str>,
    codes: BTreeMap<&'a str, &'a str>,
}

impl<'a> CodeIndex<'a> {
    fn record(&mut self, fact: &'a CodeFact) -> Result<(), Violation> {
        let (code, voucher) = (fact.code_hash.as_str(), fact.voucher_id.as_str());
        let known = *self.codes.entry(voucher).or_insert(code);
        if known != code {
            return Err(Violation::CodeChanged {
                voucher_id: voucher.to_owned(),
            });
        }
        let first = *self.vouchers.entry(code).or_insert(voucher);
        if first != voucher {
            return Err(Violation::DuplicateCode {
                first: first.to_owned(),
                second: voucher.to_owned(),
            });
        }
        Ok(())
    }
}

fn check_codes_match_order(
    orders: &AcknowledgedOrders<'_>,
    op: &Op,
    event: &Event,
    facts: &[CodeFact],
) -> Result<(), Violation> {
    let requested_order = op.invoke.order_id.as_deref().unwrap_or_default();
    let vouchers = facts.iter().map(|fact| fact.voucher_id.as_str()).collect();
    let fits = orders
        .get(requested_order)
        .is_none_or(|order| order.is_consistent_with(&vouchers));
    if fits && event.order_id == op.invoke.order_id {
        return Ok(());
    }
    Err(Violation::ForeignCodes {
        order_id: requested_order.to_owned(),
        read: event.op_id,
    })
}
