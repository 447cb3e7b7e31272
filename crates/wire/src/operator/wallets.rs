//! Operations on wallets, and the request body of top-ups and adjustments.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use vouchsafe_domain::change_request::ChangeKind;
use vouchsafe_domain::ledger::LedgerKind;
use vouchsafe_domain::ledger::transaction::{Transaction, TransactionFilter};
use vouchsafe_domain::money::{Amount, AmountText, Currency};
use vouchsafe_domain::operator::Role;
use vouchsafe_domain::wallet::Wallet;

use super::text::Reference;
use crate::column::col;
use crate::error_body::InvalidRequest;
use crate::error_code::Code;
use crate::filter::WholeList;
use crate::operation::{Page, operations};
use crate::operator::operation::SecondOperator::Sometimes;
use crate::operator::operation::{Operation, OperatorAccess, get, post};

operations! {
    OperatorAccess;
    LIST_WALLETS: Operation<WholeList, Page<Wallet>> =
        get("/partners/{partner_id}/wallets", Role::Viewer, "listWallets", "List the wallets of a partner")
            .columns(&[
                col("Currency", "currency"),
                col("Balance", "balance"),
                col("In orders", "pending_orders"),
                col("In payouts", "pending_payouts"),
                col("Changed", "updated_at"),
            ]);
    LIST_TRANSACTIONS: Operation<TransactionFilter, Page<Transaction>> =
        get("/partners/{partner_id}/transactions", Role::Viewer, "listTransactions", "List the transactions of a partner")
            .columns(&[
                col("Time", "created_at").at(5),
                col("Type", "type"),
                col("Amount", "amount currency"),
                col("Balance", "balance_after"),
                col("Order", "order_id"),
                col("Payout", "payout_id").at(9),
                col("Reference", "reference").text(16),
                col("Transaction", "transaction_id"),
                col("Number", "currency sequence").at(0).terminal_only(),
            ]);
    TOP_UP: Operation<PostingRequest, Transaction> = post(
        "/partners/{partner_id}/wallets/{currency}/top-ups",
        Role::Admin,
        Sometimes(&[ChangeKind::TopUp]),
        "topUp",
        "Top up a wallet",
    )
        .errors(&[Code::StepUpRequired, Code::InsufficientFunds, Code::IdempotencyInProgress, Code::IdempotencyKeyReused]);
    ADJUST: Operation<PostingRequest, Transaction> = post(
        "/partners/{partner_id}/wallets/{currency}/adjustments",
        Role::Admin,
        Sometimes(&[ChangeKind::Adjustment]),
        "adjust",
        "Adjust the balance of a wallet",
    )
        .errors(&[Code::StepUpRequired, Code::InsufficientFunds, Code::IdempotencyInProgress, Code::IdempotencyKeyReused]);
}

/// Minor units: thousands of postings do not overflow a balance.
const MAX_AMOUNT: i64 = 1_000_000_000_000_000;

/// Amount to post to a wallet.
#[derive(Debug, Serialize, Deserialize, ToSchema, clap::Args)]
#[serde(deny_unknown_fields)]
pub struct PostingRequest {
    /// Amount; a negative adjustment takes money away.
    #[arg(allow_negative_numbers = true, help = "Amount, e.g. 1000.00")]
    amount: AmountText,
    /// Your reference; the amount is posted once per reference.
    #[arg(long, help = "Your reference, e.g. the number of a bank statement")]
    reference: Reference,
}

impl PostingRequest {
    /// The amount and the reference of a posting of this kind.
    ///
    /// # Errors
    /// `VALIDATION_FAILED` for an invalid amount; a top-up must be positive.
    pub fn validate(&self, currency: Currency, kind: LedgerKind) -> Result<(Amount, String), InvalidRequest> {
        let amount = self.amount.parse(currency);
        let amount = amount.map_err(|error| InvalidRequest::field("amount", error.to_string()))?;
        if amount == Amount::ZERO || amount.minor().unsigned_abs() > MAX_AMOUNT.unsigned_abs() {
            return Err(InvalidRequest::field(
                "amount",
                "expected a non-zero amount of at most 10^15 minor units",
            ));
        }
        if kind == LedgerKind::TopUp && amount < Amount::ZERO {
            return Err(InvalidRequest::field(
                "amount",
                "expected more than zero; use an adjustment to take money away",
            ));
        }
        Ok((amount, self.reference.clone().into()))
    }
}
