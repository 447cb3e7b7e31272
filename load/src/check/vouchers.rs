//! Was any voucher or any code sold twice?

use std::collections::{BTreeMap, BTreeSet};

use super::Violation;
use super::orders::AcknowledgedOrders;
use crate::history::{CodeFact, Event, History, Op};

/// Returns how many distinct vouchers and codes were seen.
pub(super) fn check(history: &History, orders: &AcknowledgedOrders<'_>) -> Result<(usize, usize), Violation> {
    let mut owners = Owners::default();
    let mut codes = Codes::default();
    for op in history.ops() {
        let Some(event) = op.ok() else { continue };
        let Some(order_id) = event.order_id.as_deref() else {
            continue;
        };
        if let Some(facts) = &event.order {
            owners.list(order_id, facts.vouchers.iter().map(String::as_str))?;
        }
        if let Some(facts) = &event.codes {
            owners.list(order_id, facts.iter().map(|fact| fact.voucher_id.as_str()))?;
            facts.iter().try_for_each(|fact| codes.read(fact))?;
            of_the_order_asked_for(orders, op, event, facts)?;
        }
    }
    Ok((owners.0.len(), codes.vouchers.len()))
}

/// Voucher → the order that has it.
#[derive(Default)]
struct Owners<'a>(BTreeMap<&'a str, &'a str>);

impl<'a> Owners<'a> {
    fn list(&mut self, order_id: &'a str, vouchers: impl Iterator<Item = &'a str>) -> Result<(), Violation> {
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

/// Code ↔ voucher, each way one to one.
#[derive(Default)]
struct Codes<'a> {
    vouchers: BTreeMap<&'a str, &'a str>,
    codes: BTreeMap<&'a str, &'a str>,
}

impl<'a> Codes<'a> {
    fn read(&mut self, fact: &'a CodeFact) -> Result<(), Violation> {
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

fn of_the_order_asked_for(
    orders: &AcknowledgedOrders<'_>,
    op: &Op,
    event: &Event,
    facts: &[CodeFact],
) -> Result<(), Violation> {
    let asked = op.invoke.order_id.as_deref().unwrap_or_default();
    let vouchers = facts.iter().map(|fact| fact.voucher_id.as_str()).collect();
    let fits = orders.get(asked).is_none_or(|order| order.is_consistent_with(&vouchers));
    if fits && event.order_id == op.invoke.order_id {
        return Ok(());
    }
    Err(Violation::ForeignCodes {
        order_id: asked.to_owned(),
        read: event.op_id,
    })
}
