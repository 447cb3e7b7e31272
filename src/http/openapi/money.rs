//! What is said of `/wallets`, `/transactions` and `/payouts`.

use serde_json::{Value, json};
use utoipa::PartialSchema as _;
use utoipa::openapi::HttpMethod;
use vouchsafe_actors::domain::ids::{OrderId, PayoutId};
use vouchsafe_actors::domain::ledger::LedgerKind;
use vouchsafe_actors::domain::money::Currency;
use vouchsafe_actors::domain::payout::PayoutStatus;

use super::orders::key;
use super::{MONEY, identified, signed};
use crate::errors::Code;
use crate::http::TransactionBody;
use crate::http::payouts::PayoutBody;
use crate::http::payouts::request::PayoutRequest;
use crate::http::wallets::WalletBody;
use crate::openapi::{Answer, Header, Operation, word};

/// `GET /wallets`.
pub(super) fn list_wallets() -> Operation {
    let wallet = json!({
        "currency": "USD", "balance": 9_974.5, "pending_orders": 25.5, "pending_payouts": 0,
        "updated_at": "2026-11-20T12:00:00.123456Z",
    });
    identified(HttpMethod::Get, "/wallets", "listWallets")
        .says(
            MONEY,
            "List wallets",
            "The balance in each currency, exact at this moment.",
        )
        .paged()
        .answers(Answer::page_of::<WalletBody>("Wallets.", wallet))
}

/// `GET /transactions`.
pub(super) fn list_transactions() -> Operation {
    let transaction = json!({
        "transaction_id": "txn_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f", "type": "DEBIT", "amount": -25.5, "currency": "USD",
        "balance_after": 9_974.5, "sequence": 2, "order_id": "ord_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f",
        "payout_id": null, "reference": null, "created_at": "2026-11-20T12:00:00.123456Z",
    });
    identified(HttpMethod::Get, "/transactions", "listTransactions")
        .says(
            MONEY,
            "List transactions",
            "Every movement of money in your wallets, newest first. `sequence` counts those of a wallet without a gap.",
        )
        .dated()
        .query("order_id", "Only those of this order.", OrderId::schema())
        .query(
            "type",
            "Only those of this type.",
            word(LedgerKind::ALL.map(LedgerKind::as_str)),
        )
        .query("currency", "Only those of this wallet.", Currency::schema())
        .paged()
        .answers(Answer::page_of::<TransactionBody>("Transactions.", transaction))
}

/// `POST /payouts`.
pub(super) fn request_payout() -> Operation {
    let request = json!({
        "amount": 250, "currency": "USD",
        "destination": { "type": "bank_account", "iban": "DE89370400440532013000", "name": "Acme GmbH" },
        "reference": "march",
    });
    signed(HttpMethod::Post, "/payouts", "requestPayout")
        .says(
            MONEY,
            "Request a payout",
            "Takes the money out of the wallet; an operator pays it. What is not paid comes back as a `PAYOUT_REVERSAL`.",
        )
        .required_header(
            "Idempotency-Key",
            "Your name for this payout: the same request under the same key is executed once, and answered alike for 24 \
             hours.",
            key(),
        )
        .takes::<PayoutRequest>(request)
        .answers(
            Answer::of::<PayoutBody<'_>>(202, "Accepted: it waits to be paid.", payout())
                .with(Header::Location)
                .with(Header::Replayed),
        )
        .refuses_for_good(&[Code::InsufficientFunds])
        .refuses(&[
            Code::MissingIdempotencyKey,
            Code::IdempotencyInProgress,
            Code::ValidationFailed,
            Code::IdempotencyKeyReused,
        ])
}

/// `GET /payouts`.
pub(super) fn list_payouts() -> Operation {
    identified(HttpMethod::Get, "/payouts", "listPayouts")
        .says(MONEY, "List payouts", "Your payouts, newest first.")
        .query(
            "status",
            "Only those in this status.",
            word(PayoutStatus::ALL.map(PayoutStatus::as_str)),
        )
        .paged()
        .answers(Answer::page_of::<PayoutBody<'_>>("Payouts.", payout()))
}

/// `GET /payouts/{payout_id}`.
pub(super) fn get_payout() -> Operation {
    identified(HttpMethod::Get, "/payouts/{payout_id}", "getPayout")
        .says(
            MONEY,
            "Get a payout",
            "Where the payout is, and how it came there. Where it goes is masked.",
        )
        .path("payout_id", "Which payout.", PayoutId::schema())
        .answers(Answer::of::<PayoutBody<'_>>(200, "The payout.", payout()))
        .refuses(&[Code::PayoutNotFound])
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
