//! Rules on idempotency keys: one stored response per key, and every unknown outcome becomes definite.

use std::collections::BTreeMap;

use super::Violation;
use crate::history::{Call, Event, EventKind, History, Op};

/// Order calls by partner and key, in invocation order.
pub(super) type Keys<'a> = BTreeMap<(&'a str, &'a str), Vec<&'a Op>>;

pub(super) fn group_by_key(history: &History) -> Keys<'_> {
    let mut keys = Keys::new();
    for op in history.ops().filter(|op| op.invoke.f == Call::Order) {
        let key = op.invoke.key.as_deref().unwrap_or_default();
        keys.entry((&op.invoke.partner, key)).or_default().push(op);
    }
    keys
}

/// Returns the number of unknown outcomes settled by a repetition.
pub(super) fn check(keys: &Keys<'_>) -> Result<usize, Violation> {
    let mut settled = 0;
    for ((partner, key), ops) in keys {
        check_single_response(partner, key, ops)?;
        settled += check_settled(partner, key, ops)?;
    }
    Ok(settled)
}

/// Whether the service stores this response under its key.
fn is_stored(event: &Event) -> bool {
    let refusal = (event.status, event.code.as_deref());
    let is_stored_refusal = matches!(
        refusal,
        (Some(402), Some("INSUFFICIENT_FUNDS")) | (Some(409), Some("INSUFFICIENT_INVENTORY"))
    );
    event.kind == EventKind::Ok || is_stored_refusal
}

/// Whether the response means "not now", or the request was not sent.
fn is_postponed(event: &Event) -> bool {
    let not_now = matches!(event.status, None | Some(409 | 429 | 500..));
    not_now && !is_stored(event)
}

fn check_single_response(partner: &str, key: &str, ops: &[&Op]) -> Result<(), Violation> {
    let first = ops
        .iter()
        .filter_map(|op| op.definite().filter(|event| is_stored(event)))
        .min_by_key(|event| event.t_ns);
    let Some(first) = first else { return Ok(()) };
    let differs = |op: &Op| {
        op.definite().is_some_and(|event| {
            if is_stored(event) {
                let compared_parts =
                    |event: &Event| (event.status, event.body_hash.clone(), event.req_hash.clone());
                return compared_parts(event) != compared_parts(first);
            }
            // The service rightly rejects another body under the key. A request that overlaps the first
            // response may have been rejected before that response was stored.
            let repeats = event.req_hash == first.req_hash && op.invoke.t_ns > first.t_ns;
            repeats && !is_postponed(event)
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

fn check_settled(partner: &str, key: &str, ops: &[&Op]) -> Result<usize, Violation> {
    let settles = |open: &Op, event: &Event, op: &Op| {
        is_stored(event) || (!is_postponed(event) && op.invoke.t_ns > open.invoke.t_ns)
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
