//! What is said of `/wallets` and `/transactions`.

use serde_json::json;
use utoipa::PartialSchema as _;
use utoipa::openapi::HttpMethod;
use vouchsafe_actors::domain::ids::OrderId;
use vouchsafe_actors::domain::ledger::LedgerKind;
use vouchsafe_actors::domain::money::Currency;

use super::{MONEY, identified};
use crate::http::TransactionBody;
use crate::http::wallets::WalletBody;
use crate::openapi::{Answer, Operation, word};

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
