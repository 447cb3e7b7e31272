//! Was every Idempotency-Key given one answer, and does every unknown outcome end in one?

use std::collections::BTreeMap;

use super::Violation;
use crate::history::{Call, Event, EventKind, History, Op};

/// The order calls of one partner under one key, by invocation.
pub(super) type Keys<'a> = BTreeMap<(&'a str, &'a str), Vec<&'a Op>>;

pub(super) fn group_by_key(history: &History) -> Keys<'_> {
    let mut keys = Keys::new();
    for op in history.ops().filter(|op| op.invoke.f == Call::Order) {
        let key = op.invoke.key.as_deref().unwrap_or_default();
        keys.entry((&op.invoke.partner, key)).or_default().push(op);
    }
    keys
}

/// Returns how many unknown outcomes their keys settled.
pub(super) fn check(keys: &Keys<'_>) -> Result<usize, Violation> {
    let mut settled = 0;
    for ((partner, key), ops) in keys {
        one_answer(partner, key, ops)?;
        settled += all_settled(partner, key, ops)?;
    }
    Ok(settled)
}

/// Whether the service keeps this answer under its key.
fn kept(event: &Event) -> bool {
    let refusal = (event.status, event.code.as_deref());
    let kept_refusal = matches!(
        refusal,
        (Some(402), Some("INSUFFICIENT_FUNDS")) | (Some(409), Some("INSUFFICIENT_INVENTORY"))
    );
    event.kind == EventKind::Ok || kept_refusal
}

/// Whether this answer only says "not now", or nothing was asked.
fn postpones(event: &Event) -> bool {
    let not_now = matches!(event.status, None | Some(409 | 429 | 500..));
    not_now && !kept(event)
}

fn one_answer(partner: &str, key: &str, ops: &[&Op]) -> Result<(), Violation> {
    let first = ops
        .iter()
        .filter_map(|op| op.definite().filter(|event| kept(event)))
        .min_by_key(|event| event.t_ns);
    let Some(first) = first else { return Ok(()) };
    let differs = |op: &Op| {
        op.definite().is_some_and(|event| {
            if kept(event) {
                let of = |event: &Event| (event.status, event.body_hash.clone(), event.req_hash.clone());
                return of(event) != of(first);
            }
            // Another body under the key is refused, rightly. What overlapped the first answer may still have
            // been refused before it was kept.
            let repeats = event.req_hash == first.req_hash && op.invoke.t_ns > first.t_ns;
            repeats && !postpones(event)
        })
    };
    match ops.iter().find(|op| differs(op)) {
        None => Ok(()),
        Some(op) => Err(Violation::ResponsesDiffer {
            partner: partner.to_owned(),
            key: key.to_owned(),
            first: first.op_id,
            second: op.invoke.op_id,
        }),
    }
}

fn all_settled(partner: &str, key: &str, ops: &[&Op]) -> Result<usize, Violation> {
    let settles = |open: &Op, event: &Event, op: &Op| {
        kept(event) || (!postpones(event) && op.invoke.t_ns > open.invoke.t_ns)
    };
    let mut settled = 0;
    for open in ops.iter().filter(|op| op.definite().is_none()) {
        if !ops
            .iter()
            .any(|op| op.definite().is_some_and(|event| settles(open, event, op)))
        {
            return Err(Violation::Unsettled {
                partner: partner.to_owned(),
                key: key.to_owned(),
                op_id: open.invoke.op_id,
            });
        }
        settled += 1;
    }
    Ok(settled)
}
