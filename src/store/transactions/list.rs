//! A page of a partner's ledger: which entries, in which order, found by which index?
//!
//! Each wallet is walked by its numbers, from the newest down: they have no gap, and the ledger has them in an index
//! already. The page is what is newest of all wallets, of which a partner has few. An index on the time would cost every
//! order; instead the numbers of a span of time are found by halving (`booked_before`).
//!
//! | asked for | found by |
//! |---|---|
//! | anything, a time, a currency, debits | the wallet's numbers |
//! | another type than debits | `ledger_by_kind` |
//! | an order | its debit by the primary key, the rest by `ledger_of_order` |
//!
//! Rule: where a walk stands is a number for each wallet. So it neither repeats nor leaves out an entry, whatever is
//! booked meanwhile and whatever clocks say.

use sqlx::{PgPool, Postgres, QueryBuilder};
use vouchsafe_actors::domain::ids::{OrderId, PartnerId, TransactionId};
use vouchsafe_actors::domain::ledger::LedgerKind;
use vouchsafe_actors::domain::money::Currency;

use super::place::{LedgerPage, LedgerPlace};
use super::{Transaction, TransactionRow};
use crate::store::audit::rows;
use crate::store::{Period, PgStore};

/// By how much the times of a wallet may run against its numbers: a statement reads the clock before it has the wallet
/// to itself, and lasts 15 s at most. The rest is for a clock that is set back.
const DISORDER: &str = "interval '1 minute'";

/// Which entries are asked for; `None` is any.
#[derive(Debug, Clone, Copy, Default)]
pub struct TransactionFilter {
    /// Booked in this time.
    pub period: Period,
    pub order_id: Option<OrderId>,
    pub kind: Option<LedgerKind>,
    pub currency: Option<Currency>,
}

impl PgStore {
    /// Up to `limit` ledger entries of a partner, newest first, of those behind `after` where it is given.
    ///
    /// # Errors
    /// [`sqlx::Error`] when the database does not answer.
    pub async fn list_transactions(
        &self,
        partner_id: PartnerId,
        filter: TransactionFilter,
        after: Option<LedgerPlace>,
        limit: usize,
    ) -> Result<LedgerPage, sqlx::Error> {
        self.run(move |pool| async move {
            // One more of each wallet than are shown says whether there are more.
            let query = statement(partner_id, &filter, after.as_ref(), limit + 1);
            let entries = list(&pool, query).await?;
            Ok(LedgerPage::newest(entries, limit))
        })
        .await
    }
}

/// The statement is planned for what is asked for, and its plan is not kept: the index to take depends on the values.
async fn list(pool: &PgPool, mut query: QueryBuilder<Postgres>) -> Result<Vec<Transaction>, sqlx::Error> {
    let found: Vec<TransactionRow> = query.build_query_as().persistent(false).fetch_all(pool).await?;
    found.into_iter().map(Transaction::try_from).collect()
}

/// Up to `limit` entries of each wallet, the greatest number first.
fn statement(
    partner_id: PartnerId,
    filter: &TransactionFilter,
    after: Option<&LedgerPlace>,
    limit: usize,
) -> QueryBuilder<Postgres> {
    let mut query = QueryBuilder::new("SELECT l.* FROM (");
    wallets(&mut query, partner_id, filter.currency, after);
    query.push(") AS w CROSS JOIN LATERAL (SELECT * FROM ");
    match filter.order_id {
        Some(order_id) => of_order(&mut query, partner_id, order_id),
        None => query.push("ledger"),
    };
    query.push(" AS l WHERE l.partner_id = w.partner_id AND l.currency = w.currency AND l.sequence < w.next");
    if filter.order_id.is_none() {
        numbers_of(&mut query, filter.period);
    }
    filter.period.restrict(&mut query, "l.created_at");
    if let Some(kind) = filter.kind {
        query.push(" AND l.kind = ").push_bind(kind.as_str());
        if kind != LedgerKind::Debit {
            // Else the server would not see that the partial indexes have them.
            query.push(" AND l.kind <> 'DEBIT'");
        }
    }
    query
        .push(" ORDER BY l.sequence DESC LIMIT ")
        .push_bind(rows(limit));
    query.push(") AS l ORDER BY l.currency, l.sequence DESC");
    query
}

/// The wallets to walk, each with the number below which its walk goes on. One that had nothing to show when the walk
/// began is none of them.
fn wallets(
    query: &mut QueryBuilder<Postgres>,
    partner_id: PartnerId,
    currency: Option<Currency>,
    after: Option<&LedgerPlace>,
) {
    match after {
        None => query.push("SELECT w.*, w.sequence + 1 AS next FROM wallets AS w"),
        Some(place) => {
            let (currencies, numbers): (Vec<String>, Vec<i64>) = place.by_wallet().unzip();
            query.push("SELECT w.*, p.next FROM wallets AS w JOIN unnest(");
            query.push_bind(currencies).push("::text[], ").push_bind(numbers);
            query.push("::bigint[]) AS p (currency, next) ON p.currency = w.currency")
        }
    };
    query
        .push(" WHERE w.partner_id = ")
        .push_bind(partner_id.as_uuid());
    if let Some(currency) = currency {
        query
            .push(" AND w.currency = ")
            .push_bind(currency.as_str().to_owned());
    }
}

/// The entries of an order, which are few.
fn of_order(
    query: &mut QueryBuilder<Postgres>,
    partner_id: PartnerId,
    order_id: OrderId,
) -> &mut QueryBuilder<Postgres> {
    query.push("(SELECT * FROM ledger WHERE kind = 'DEBIT' AND partner_id = ");
    query
        .push_bind(partner_id.as_uuid())
        .push(" AND transaction_id = ");
    query.push_bind(TransactionId::debit_of(order_id).as_uuid());
    query.push(" UNION ALL SELECT * FROM ledger WHERE kind <> 'DEBIT' AND partner_id = ");
    query.push_bind(partner_id.as_uuid()).push(" AND order_id = ");
    query.push_bind(order_id.as_uuid()).push(")")
}

/// Narrows a wallet's numbers down to those that can lie in the period.
fn numbers_of(query: &mut QueryBuilder<Postgres>, period: Period) {
    const BOOKED_BEFORE: &str = "booked_before(w.partner_id, w.currency, w.sequence, ";
    if let Some(from) = period.from {
        query.push(" AND l.sequence > ").push(BOOKED_BEFORE);
        query.push_bind(from).push(" - ").push(DISORDER).push(")");
    }
    if let Some(to) = period.to {
        query.push(" AND l.sequence <= ").push(BOOKED_BEFORE);
        query.push_bind(to).push(" + ").push(DISORDER).push(")");
    }
}
