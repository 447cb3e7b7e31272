//! Ledger reads. The API calls ledger entries "transactions".

mod list;

use time::OffsetDateTime;
use vouchsafe_database::boxed;
use vouchsafe_database::error::StoreError;
use vouchsafe_domain::ids::{OrderId, PartnerId, PayoutId, TransactionId};
use vouchsafe_domain::ledger::LedgerKind;
use vouchsafe_domain::ledger::transaction::Transaction;
use vouchsafe_domain::money::{Amount, Currency};

use vouchsafe_database::database::Database;

#[derive(sqlx::FromRow)]
struct TransactionRow {
    transaction_id: TransactionId,
    kind: LedgerKind,
    amount: Amount,
    currency: Currency,
    balance_after: Amount,
    sequence: i64,
    order_id: Option<OrderId>,
    payout_id: Option<PayoutId>,
    reference: Option<String>,
    created_at: OffsetDateTime,
}

impl From<TransactionRow> for Transaction {
    fn from(row: TransactionRow) -> Self {
        Self {
            transaction_id: row.transaction_id,
            kind: row.kind,
            amount: row.amount.of(row.currency),
            currency: row.currency,
            balance_after: row.balance_after.of(row.currency),
            sequence: row.sequence,
            order_id: row.order_id,
            payout_id: row.payout_id,
            reference: row.reference,
            created_at: row.created_at,
        }
    }
}

/// The ledger: bookings on the wallets.
#[derive(Debug, Clone)]
pub struct Transactions(pub(super) Database);

impl Transactions {
    /// Finds a ledger entry of this partner.
    #[boxed]
    pub async fn find(
        &self,
        partner_id: PartnerId,
        transaction_id: TransactionId,
    ) -> Result<Option<Transaction>, StoreError> {
        let statement = sqlx::query_as!(
            TransactionRow,
            r#"SELECT transaction_id AS "transaction_id: TransactionId", kind AS "kind: LedgerKind",
                    amount AS "amount: Amount", currency AS "currency: Currency", balance_after AS "balance_after: Amount",
                    sequence, order_id AS "order_id: OrderId", payout_id AS "payout_id: PayoutId", reference, created_at
               FROM ledger
              WHERE partner_id = $1 AND transaction_id = $2"#,
            partner_id as _,
            transaction_id as _,
        );
        self.0.fetch_optional(statement.map(Transaction::from)).await
    }
}
