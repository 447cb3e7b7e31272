//! Ledger reads. The API calls ledger entries "transactions".

mod list;

use time::OffsetDateTime;
use uuid::Uuid;
use vouchsafe_domain::ids::{OrderId, PartnerId, PayoutId, TransactionId};
use vouchsafe_domain::ledger::LedgerKind;
use vouchsafe_domain::ledger::transaction::Transaction;
use vouchsafe_domain::money::Amount;

use super::database::Database;

#[derive(sqlx::FromRow)]
struct TransactionRow {
    transaction_id: TransactionId,
    kind: LedgerKind,
    amount: i64,
    currency: String,
    balance_after: i64,
    sequence: i64,
    order_id: Option<OrderId>,
    payout_id: Option<PayoutId>,
    reference: Option<String>,
    created_at: OffsetDateTime,
}

impl TryFrom<TransactionRow> for Transaction {
    type Error = sqlx::Error;

    fn try_from(row: TransactionRow) -> Result<Self, sqlx::Error> {
        let transaction_id = row.transaction_id;
        let invalid = |column: &str| {
            sqlx::Error::Decode(format!("transaction {transaction_id} has an invalid {column}").into())
        };
        let currency = row.currency.parse().map_err(|_| invalid("currency"))?;
        Ok(Self {
            transaction_id,
            kind: row.kind,
            amount: Amount::from_minor(row.amount).of(currency),
            currency,
            balance_after: Amount::from_minor(row.balance_after).of(currency),
            sequence: row.sequence,
            order_id: row.order_id,
            payout_id: row.payout_id,
            reference: row.reference,
            created_at: row.created_at,
        })
    }
}

/// The ledger: bookings on the wallets.
#[derive(Debug, Clone)]
pub struct Transactions(pub(super) Database);

impl Transactions {
    /// Finds a ledger entry of this partner.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn find(
        &self,
        partner_id: PartnerId,
        transaction_id: TransactionId,
    ) -> Result<Option<Transaction>, sqlx::Error> {
        self.0
            .run(move |pool| async move {
                let row: Option<TransactionRow> =
                    sqlx::query_as("SELECT * FROM ledger WHERE partner_id = $1 AND transaction_id = $2")
                        .bind(partner_id)
                        .bind(transaction_id)
                        .fetch_optional(&pool)
                        .await?;
                row.map(Transaction::try_from).transpose()
            })
            .await
    }
}
