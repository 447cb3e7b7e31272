//! Ledger lists: keyset pagination over all wallets of a partner, newest entries first.
//!
//! Each wallet is read by descending sequence number, which has no gaps and is indexed. A page merges the
//! newest entries of all wallets, of which a partner has few. An index on the time would slow down every
//! order; instead a binary search (`last_entry_before_v1`) finds the sequence numbers of a period.
//!
//! | filter | index |
//! |---|---|
//! | none, period, currency, debits | sequence number of the wallet |
//! | another type | `ledger_by_kind` |
//! | order | primary key for the debit, `ledger_of_order` for other entries |
//!
//! The cursor is a sequence number per wallet: pagination neither repeats nor skips an entry, whatever is
//! posted meanwhile and however clocks drift.

use sqlx::{PgPool, Postgres, QueryBuilder};
use vouchsafe_database::boxed;
use vouchsafe_database::error::StoreError;
use vouchsafe_database::query::{restrict_period, to_bigint};
use vouchsafe_domain::ids::{OrderId, PartnerId, TransactionId};
use vouchsafe_domain::ledger::LedgerKind;
use vouchsafe_domain::ledger::cursor::{LedgerCursor, LedgerPage};
use vouchsafe_domain::ledger::transaction::{Transaction, TransactionFilter};
use vouchsafe_domain::money::Currency;
use vouchsafe_domain::period::Period;

use super::TransactionRow;
use crate::transactions::Transactions;

/// How far `created_at` can be out of sequence order in a wallet: a statement reads the clock before it locks
/// the wallet, and runs for at most 15 s. The rest allows for clock adjustments.
const MAX_CLOCK_SKEW: &str = "interval '1 minute'";

impl Transactions {
    /// Lists up to `limit` ledger entries of a partner after the cursor, newest first.
    #[boxed]
    pub async fn list(
        &self,
        partner_id: PartnerId,
        filter: TransactionFilter,
        after: Option<LedgerCursor>,
        limit: usize,
    ) -> Result<LedgerPage, StoreError> {
        self.0
            .run(move |pool| async move {
                // One extra entry per wallet tells whether there is another page.
                let query = build_query(partner_id, &filter, after.as_ref(), limit + 1);
                let entries = list(&pool, query).await?;
                Ok(LedgerPage::merge_newest(entries, limit))
            })
            .await
    }
}

/// Not prepared persistently: the best index depends on the filter values.
async fn list(pool: &PgPool, mut query: QueryBuilder<Postgres>) -> Result<Vec<Transaction>, sqlx::Error> {
    let found: Vec<TransactionRow> = query.build_query_as().persistent(false).fetch_all(pool).await?;
    Ok(found.into_iter().map(Transaction::from).collect())
}

/// Selects up to `limit` entries of each wallet, in descending sequence.
fn build_query(
    partner_id: PartnerId,
    filter: &TransactionFilter,
    after: Option<&LedgerCursor>,
    limit: usize,
) -> QueryBuilder<Postgres> {
    // Not checked at compile time: the filter determines the text.
    let mut query = QueryBuilder::new("SELECT l.* FROM (");
    push_wallets(&mut query, partner_id, filter.currency, after);
    query.push(") AS w CROSS JOIN LATERAL (SELECT * FROM ");
    match filter.order_id {
        Some(order_id) => push_order_entries(&mut query, partner_id, order_id),
        None => query.push("ledger"),
    };
    query.push(" AS l WHERE l.partner_id = w.partner_id AND l.currency = w.currency AND l.sequence < w.next");
    if filter.order_id.is_none() {
        restrict_sequence(&mut query, filter.period);
    }
    restrict_period(filter.period, &mut query, "l.created_at");
    if let Some(kind) = filter.kind {
        query.push(" AND l.kind = ").push_bind(kind);
        if kind != LedgerKind::Debit {
            // Matches the predicate of the partial indexes, or the planner would not use them.
            query.push(" AND l.kind <> 'DEBIT'");
        }
    }
    query
        .push(" ORDER BY l.sequence DESC LIMIT ")
        .push_bind(to_bigint(limit));
    query.push(") AS l ORDER BY l.currency, l.sequence DESC");
    query
}

/// Adds the query of the wallets, each with the sequence number below which to continue. Leaves out wallets
/// that were empty when pagination began.
fn push_wallets(
    query: &mut QueryBuilder<Postgres>,
    partner_id: PartnerId,
    currency: Option<Currency>,
    after: Option<&LedgerCursor>,
) {
    match after {
        None => query.push("SELECT w.*, w.sequence + 1 AS next FROM wallets AS w"),
        Some(cursor) => {
            let (currencies, numbers): (Vec<String>, Vec<i64>) = cursor.by_wallet().unzip();
            query.push("SELECT w.*, p.next FROM wallets AS w JOIN unnest(");
            query.push_bind(currencies).push("::text[], ").push_bind(numbers);
            query.push("::bigint[]) AS p (currency, next) ON p.currency = w.currency")
        }
    };
    query.push(" WHERE w.partner_id = ").push_bind(partner_id);
    if let Some(currency) = currency {
        query.push(" AND w.currency = ").push_bind(currency);
    }
}

fn push_order_entries(
    query: &mut QueryBuilder<Postgres>,
    partner_id: PartnerId,
    order_id: OrderId,
) -> &mut QueryBuilder<Postgres> {
    query.push("(SELECT * FROM ledger WHERE kind = 'DEBIT' AND partner_id = ");
    query.push_bind(partner_id).push(" AND transaction_id = ");
    query.push_bind(TransactionId::debit_of(order_id));
    query.push(" UNION ALL SELECT * FROM ledger WHERE kind <> 'DEBIT' AND partner_id = ");
    query.push_bind(partner_id).push(" AND order_id = ");
    query.push_bind(order_id).push(")")
}

/// Restricts the sequence numbers to those that can lie in the period.
fn restrict_sequence(query: &mut QueryBuilder<Postgres>, period: Period) {
    const BOOKED_BEFORE: &str = "last_entry_before_v1(w.partner_id, w.currency, w.sequence, ";
    if let Some(from) = period.from {
        query.push(" AND l.sequence > ").push(BOOKED_BEFORE);
        query.push_bind(from).push(" - ").push(MAX_CLOCK_SKEW).push(")");
    }
    if let Some(to) = period.to {
        query.push(" AND l.sequence <= ").push(BOOKED_BEFORE);
        query.push_bind(to).push(" + ").push(MAX_CLOCK_SKEW).push(")");
    }
}
