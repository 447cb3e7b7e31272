//! OpenAPI operations of `/wallets`, `/transactions` and `/payouts`.

use serde_json::{Value, json};
use utoipa::PartialSchema as _;
use utoipa::openapi::HttpMethod;
use vouchsafe_domain::ids::{OrderId, PayoutId};
use vouchsafe_domain::ledger::LedgerKind;
use vouchsafe_domain::money::Currency;
use vouchsafe_domain::payout::PayoutStatus;
use vouchsafe_wire::error_code::Code;
use vouchsafe_wire::partner::payouts::body::PayoutBody;
use vouchsafe_wire::partner::payouts::request::PayoutRequest;
use vouchsafe_wire::partner::transactions::TransactionBody;
use vouchsafe_wire::partner::wallets::WalletBody;

use super::orders::idempotency_key_schema;
use super::{MONEY, signed_operation, unsigned_operation};
use crate::api::docs::openapi::{Operation, OperationResponse, ResponseHeader, enum_text};

/// `GET /wallets`.
pub(super) fn list_wallets() -> Operation {
    let wallet = json!({
        "currency": "USD", "balance": 9_974.5, "pending_orders": 25.5, "pending_payouts": 0,
        "updated_at": "2026-11-20T12:00:00.123456Z",
    });
    unsigned_operation(HttpMethod::Get, "/wallets", "listWallets")
        .describe(
            MONEY,
            "List wallets",
            "Lists your current balance in each currency.",
        )
        .paginated()
        .response(OperationResponse::page::<WalletBody>(
            "A page of wallets.",
            wallet,
        ))
}

/// `GET /transactions`.
pub(super) fn list_transactions() -> Operation {
    let transaction = json!({
        "transaction_id": "txn_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f", "type": "DEBIT", "amount": -25.5, "currency": "USD",
        "balance_after": 9_974.5, "sequence": 2, "order_id": "ord_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f",
        "payout_id": null, "reference": null, "created_at": "2026-11-20T12:00:00.123456Z",
    });
    unsigned_operation(HttpMethod::Get, "/transactions", "listTransactions")
        .describe(
            MONEY,
            "List transactions",
            "Lists all credits and debits of your wallets, newest first. `sequence` numbers the transactions of a wallet \
             without gaps.",
        )
        .with_period()
        .query_parameter("order_id", "Filter by order.", OrderId::schema())
        .query_parameter(
            "type",
            "Filter by type.",
            enum_text(LedgerKind::ALL.map(LedgerKind::as_str)),
        )
        .query_parameter("currency", "Filter by currency.", Currency::schema())
        .paginated()
        .response(OperationResponse::page::<TransactionBody>("A page of transactions.", transaction))
}

/// `POST /payouts`.
pub(super) fn request_payout() -> Operation {
    let request = json!({
        "amount": 250, "currency": "USD",
        "destination": { "type": "bank_account", "iban": "DE89370400440532013000", "name": "Acme GmbH" },
        "reference": "march",
    });
    signed_operation(HttpMethod::Post, "/payouts", "requestPayout")
        .describe(
            MONEY,
            "Request a payout",
            "Debits the wallet; an operator then pays the amount out. If the payout fails, a `PAYOUT_REVERSAL` \
             transaction returns \
             the money.",
        )
        .required_header_parameter(
            "Idempotency-Key",
            "Unique key for this payout. The server executes a request once per key; for 24 hours repetitions get the stored \
             response.",
            idempotency_key_schema(),
        )
        .json_body::<PayoutRequest>(request)
        .response(
            OperationResponse::json::<PayoutBody<'_>>(202, "Accepted; the payout waits for an operator.", payout())
                .with_header(ResponseHeader::Location)
                .with_header(ResponseHeader::Replayed),
        )
        .stored_errors(&[Code::InsufficientFunds])
        .errors(&[
            Code::MissingIdempotencyKey,
            Code::IdempotencyInProgress,
            Code::ValidationFailed,
            Code::IdempotencyKeyReused,
        ])
}

/// `GET /payouts`.
pub(super) fn list_payouts() -> Operation {
    unsigned_operation(HttpMethod::Get, "/payouts", "listPayouts")
        .describe(MONEY, "List payouts", "Lists your payouts, newest first.")
        .query_parameter(
            "status",
            "Filter by status.",
            enum_text(PayoutStatus::ALL.map(PayoutStatus::as_str)),
        )
        .paginated()
        .response(OperationResponse::page::<PayoutBody<'_>>(
            "A page of payouts.",
            payout(),
        ))
}

/// `GET /payouts/{payout_id}`.
pub(super) fn get_payout() -> Operation {
    unsigned_operation(HttpMethod::Get, "/payouts/{payout_id}", "getPayout")
        .describe(
            MONEY,
            "Get a payout",
            "Returns a payout with its status history. The destination is masked.",
        )
        .path_parameter("payout_id", "Payout id.", PayoutId::schema())
        .response(OperationResponse::json::<PayoutBody<'_>>(
            200,
            "The payout.",
            payout(),
        ))
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
