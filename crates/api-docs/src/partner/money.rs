//! OpenAPI operations of `/wallets`, `/transactions` and `/payouts`.

use serde_json::{Value, json};
use vouchsafe_wire::partner::operations;

use super::describe;
use crate::openapi::{Operation, ResponseHeader};

pub(super) fn money() -> Vec<Operation> {
    vec![
        describe(
            operations::LIST_WALLETS,
            "Lists your current balance in each currency.",
        )
        .list("The wallets.", wallet()),
        describe(
            operations::LIST_TRANSACTIONS,
            "Lists all credits and debits of your wallets, newest \
            first. `sequence` numbers the transactions of a wallet without gaps.",
        )
        .list("A page of transactions.", transaction()),
        describe(
            operations::GET_TRANSACTION,
            "Returns a credit or debit of one of your wallets.",
        )
        .ok("The transaction.", transaction()),
        describe(operations::LIST_PAYOUTS, "Lists your payouts, newest first.")
            .list("A page of payouts.", payout()),
        describe(
            operations::REQUEST_PAYOUT,
            "Debits the wallet; an operator then pays the amount out. If \
            the payout fails, a `PAYOUT_REVERSAL` transaction returns the money.",
        )
        .idempotent("payout")
        .json_body(json!({
            "amount": 250.0, "currency": "USD",
            "destination": { "type": "bank_account", "iban": "DE89370400440532013000", "name": "Acme GmbH" },
            "reference": "march",
        }))
        .accepted("Accepted; the payout waits for an operator.", payout())
        .with_header(ResponseHeader::Location)
        .with_header(ResponseHeader::Replayed),
        describe(
            operations::GET_PAYOUT,
            "Returns a payout with its status history. The destination is masked.",
        )
        .ok("The payout.", payout()),
        describe(
            operations::CANCEL_PAYOUT,
            "Cancels a `PENDING` payout that no operator has begun to pay: \
            a `PAYOUT_REVERSAL` returns the money, once. The status becomes `REJECTED`, `by` `partner` in \
            the timeline. A repeated call returns the same.",
        )
        .optional_json_body(json!({ "reason": "wrong account" }))
        .ok("The cancelled payout.", cancelled_payout()),
    ]
}

fn cancelled_payout() -> Value {
    let mut payout = payout();
    payout["status"] = json!("REJECTED");
    let entry = json!({
        "status": "REJECTED", "at": "2026-11-20T12:05:00.123456Z", "by": "partner", "reason": "wrong account", "reference": null,
    });
    payout["timeline"]
        .as_array_mut()
        .into_iter()
        .for_each(|all| all.push(entry.clone()));
    payout
}

pub(crate) fn wallet() -> Value {
    json!({
        "currency": "USD", "balance": 9_974.5, "pending_orders": 25.5, "pending_payouts": 0.0,
        "updated_at": "2026-11-20T12:00:00.123456Z",
    })
}

pub(crate) fn transaction() -> Value {
    json!({
        "transaction_id": "txn_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f", "type": "DEBIT", "amount": -25.5, "currency": "USD",
        "balance_after": 9_974.5, "sequence": 2, "order_id": "ord_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f",
        "payout_id": null, "reference": null, "created_at": "2026-11-20T12:00:00.123456Z",
    })
}

fn payout() -> Value {
    let at = "2026-11-20T12:00:00.123456Z";
    json!({
        "payout_id": "po_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f", "status": "PENDING", "amount": 250.0, "currency": "USD",
        "destination": { "type": "bank_account", "iban": "****3000", "name": "****GmbH" }, "reference": "march",
        "created_at": at,
        "timeline": [{ "status": "PENDING", "at": at, "by": "partner", "reason": null, "reference": null }],
    })
}
