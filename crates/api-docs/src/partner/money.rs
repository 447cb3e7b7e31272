//! OpenAPI operations of `/wallets`, `/transactions` and `/payouts`.

use serde_json::{Value, json};
use utoipa::PartialSchema as _;
use vouchsafe_domain::ids::PayoutId;
use vouchsafe_domain::ledger::transaction::{Transaction, TransactionFilter};
use vouchsafe_domain::payout::PayoutFilter;
use vouchsafe_domain::wallet::Wallet;
use vouchsafe_wire::error_code::Code;
use vouchsafe_wire::filter::WholeList;
use vouchsafe_wire::partner::payouts::body::PayoutBody;
use vouchsafe_wire::partner::payouts::request::PayoutRequest;

use super::{MONEY, signed_operation, unsigned_operation};
use crate::openapi::{Operation, OperationResponse, ResponseHeader};

pub fn list_wallets(operation: Operation) -> Operation {
    unsigned_operation(operation, "listWallets")
        .describe(
            MONEY,
            "List wallets",
            "Lists your current balance in each currency.",
        )
        .list::<WholeList, Wallet>("The wallets.", wallet())
}

pub fn wallet() -> Value {
    json!({
        "currency": "USD", "balance": 9_974.5, "pending_orders": 25.5, "pending_payouts": 0,
        "updated_at": "2026-11-20T12:00:00.123456Z",
    })
}

pub fn list_transactions(operation: Operation) -> Operation {
    unsigned_operation(operation, "listTransactions")
        .describe(
            MONEY,
            "List transactions",
            "Lists all credits and debits of your wallets, newest first. `sequence` numbers the transactions of a wallet \
             without gaps.",
        )
        .list::<TransactionFilter, Transaction>("A page of transactions.", transaction())
}

pub fn transaction() -> Value {
    json!({
        "transaction_id": "txn_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f", "type": "DEBIT", "amount": -25.5, "currency": "USD",
        "balance_after": 9_974.5, "sequence": 2, "order_id": "ord_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f",
        "payout_id": null, "reference": null, "created_at": "2026-11-20T12:00:00.123456Z",
    })
}

pub fn request_payout(operation: Operation) -> Operation {
    let request = json!({
        "amount": 250, "currency": "USD",
        "destination": { "type": "bank_account", "iban": "DE89370400440532013000", "name": "Acme GmbH" },
        "reference": "march",
    });
    signed_operation(operation, "requestPayout")
        .describe(
            MONEY,
            "Request a payout",
            "Debits the wallet; an operator then pays the amount out. If the payout fails, a `PAYOUT_REVERSAL` \
             transaction returns \
             the money.",
        )
        .idempotent("payout")
        .json_body::<PayoutRequest>(request)
        .response(
            OperationResponse::json::<PayoutBody<'_>>(202, "Accepted; the payout waits for an operator.", payout())
                .with_header(ResponseHeader::Location)
                .with_header(ResponseHeader::Replayed),
        )
        .stored_errors(&[Code::InsufficientFunds])
        .errors(&[Code::ValidationFailed])
}

pub fn list_payouts(operation: Operation) -> Operation {
    unsigned_operation(operation, "listPayouts")
        .describe(MONEY, "List payouts", "Lists your payouts, newest first.")
        .list::<PayoutFilter, PayoutBody<'_>>("A page of payouts.", payout())
}

pub fn get_payout(operation: Operation) -> Operation {
    unsigned_operation(operation, "getPayout")
        .describe(
            MONEY,
            "Get a payout",
            "Returns a payout with its status history. The destination is masked.",
        )
        .path_parameter("payout_id", "Payout id.", PayoutId::schema())
        .ok::<PayoutBody<'_>>("The payout.", payout())
        .errors(&[Code::PayoutNotFound])
}

fn payout() -> Value {
    let at = "2026-11-20T12:00:00.123456Z";
    json!({
        "payout_id": "po_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f", "status": "PENDING", "amount": 250, "currency": "USD",
        "destination": { "type": "bank_account", "iban": "****3000", "name": "****GmbH" }, "reference": "march",
        "created_at": at,
        "timeline": [{ "status": "PENDING", "at": at, "by": "partner", "reason": null, "reference": null }],
    })
}
