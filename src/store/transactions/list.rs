//! A page of a partner's ledger: which entries, in which order, found by which index?
//!
//! Newest first by the time of booking, which is the database's: an entry is booked some time after it was decided, so
//! its id says nothing certain about it. Entries of one commit have one time; those of a wallet follow their sequence.
//!
//! | asked for | found by |
//! |---|---|
//! | anything, a time, a currency, debits | `ledger_by_time`, wallet by wallet |
//! | another type than debits | `ledger_by_kind`, wallet by wallet |
//! | an order | its debit by the primary key, the rest by `ledger_of_order` |
//!
//! A partner has few wallets. Each gives no more entries than the page has, and the newest of all of them are the page.

use std::fmt;
use std::str::FromStr;

use sqlx::{PgPool, Postgres, QueryBuilder};
use time::OffsetDateTime;
use vouchsafe_actors::domain::ids::{OrderId, PartnerId, TransactionId};
use vouchsafe_actors::domain::ledger::LedgerKind;
use vouchsafe_actors::domain::money::Currency;

use super::{Transaction, TransactionRow};
use crate::store::audit::rows;
use crate::store::{Period, PgStore};

/// Which entries are asked for; `None` is any.
#[derive(Debug, Clone, Copy, Default)]
pub struct TransactionFilter {
    /// Booked in this time.
    pub period: Period,
    /// For this order.
    pub order_id: Option<OrderId>,
    /// Of this kind.
    pub kind: Option<LedgerKind>,
    /// In this currency.
    pub currency: Option<Currency>,
}

/// Where an entry stands among those of a partner, which are listed from the greatest place down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct LedgerPlace {
    /// When it was booked, in microseconds since 1970.
    booked_us: i64,
    currency: Currency,
    sequence: i64,
}

/// A text is not the place of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoPlace;

impl LedgerPlace {
    /// The place of the entry with this number in the wallet of this currency, booked at this time.
    #[must_use]
    pub fn new(booked_at: OffsetDateTime, currency: Currency, sequence: i64) -> Self {
        let micros = booked_at.unix_timestamp_nanos() / 1_000;
        Self {
            // Times end with the year 9999, long before this would.
            booked_us: i64::try_from(micros).unwrap_or(i64::MAX),
            currency,
            sequence,
        }
    }

    fn booked_at(self) -> Option<OffsetDateTime> {
        OffsetDateTime::from_unix_timestamp_nanos(i128::from(self.booked_us) * 1_000).ok()
    }
}

impl fmt::Display for LedgerPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.booked_us, self.currency, self.sequence)
    }
}

impl FromStr for LedgerPlace {
    type Err = NoPlace;

    fn from_str(text: &str) -> Result<Self, NoPlace> {
        let read = || {
            let mut parts = text.split(' ');
            let place = Self {
                booked_us: parts.next()?.parse().ok()?,
                currency: parts.next()?.parse().ok()?,
                sequence: parts.next()?.parse().ok()?,
            };
            (parts.next().is_none() && place.booked_at().is_some()).then_some(place)
        };
        read().ok_or(NoPlace)
    }
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
    ) -> Result<Vec<Transaction>, sqlx::Error> {
        let query = match filter.order_id {
            Some(order_id) => of_order(partner_id, order_id, &filter, after),
            None => of_wallets(partner_id, &filter, after, limit),
        };
        self.run(move |pool| async move { list(&pool, query, limit).await })
            .await
    }
}

/// The statement is planned for what is asked for, and its plan is not kept: the index to take depends on the values.
async fn list(
    pool: &PgPool,
    mut query: QueryBuilder<Postgres>,
    limit: usize,
) -> Result<Vec<Transaction>, sqlx::Error> {
    query.push(" ORDER BY l.created_at DESC, l.currency COLLATE \"C\" DESC, l.sequence DESC LIMIT ");
    query.push_bind(rows(limit));
    let found: Vec<TransactionRow> = query.build_query_as().persistent(false).fetch_all(pool).await?;
    found.into_iter().map(Transaction::try_from).collect()
}

/// The newest entries of each wallet.
fn of_wallets(
    partner_id: PartnerId,
    filter: &TransactionFilter,
    after: Option<LedgerPlace>,
    limit: usize,
) -> QueryBuilder<Postgres> {
    let mut query = QueryBuilder::new(
        "SELECT l.*
           FROM (
                SELECT * FROM wallets AS w WHERE w.partner_id = ",
    );
    query.push_bind(partner_id.as_uuid());
    if let Some(currency) = filter.currency {
        query
            .push(" AND w.currency = ")
            .push_bind(currency.as_str().to_owned());
    }
    query.push(
        ") AS w
          CROSS JOIN LATERAL (
                SELECT *
                  FROM ledger AS l
                 WHERE l.partner_id = w.partner_id
                   AND l.currency = w.currency",
    );
    filter.restrict(&mut query);
    behind(&mut query, after);
    query.push(" ORDER BY l.created_at DESC, l.sequence DESC LIMIT ");
    query.push_bind(rows(limit)).push(") AS l");
    query
}

/// The entries of an order, which are few.
fn of_order(
    partner_id: PartnerId,
    order_id: OrderId,
    filter: &TransactionFilter,
    after: Option<LedgerPlace>,
) -> QueryBuilder<Postgres> {
    let mut query = QueryBuilder::new(
        "SELECT l.*
           FROM (
                SELECT * FROM ledger WHERE partner_id = ",
    );
    query
        .push_bind(partner_id.as_uuid())
        .push(" AND transaction_id = ");
    query.push_bind(TransactionId::debit_of(order_id).as_uuid());
    query.push(" AND kind = 'DEBIT' UNION ALL SELECT * FROM ledger WHERE partner_id = ");
    query.push_bind(partner_id.as_uuid()).push(" AND order_id = ");
    query.push_bind(order_id.as_uuid());
    query.push(" AND kind <> 'DEBIT') AS l WHERE true");
    if let Some(currency) = filter.currency {
        query
            .push(" AND l.currency = ")
            .push_bind(currency.as_str().to_owned());
    }
    filter.restrict(&mut query);
    behind(&mut query, after);
    query
}

impl TransactionFilter {
    fn restrict(&self, query: &mut QueryBuilder<Postgres>) {
        self.period.restrict(query, "l.created_at");
        let Some(kind) = self.kind else { return };
        query.push(" AND l.kind = ").push_bind(kind.as_str());
        if kind != LedgerKind::Debit {
            // Else the server would not see that the partial indexes have them.
            query.push(" AND l.kind <> 'DEBIT'");
        }
    }
}

/// What comes behind this place. The first condition is for the index, the second tells entries of one moment apart.
fn behind(query: &mut QueryBuilder<Postgres>, after: Option<LedgerPlace>) {
    let Some(after) = after else { return };
    let booked_at = after.booked_at();
    query.push(" AND l.created_at <= ").push_bind(booked_at);
    query.push(" AND (l.created_at, l.currency COLLATE \"C\", l.sequence) < (");
    query.push_bind(booked_at).push(", ");
    query.push_bind(after.currency.as_str().to_owned()).push(", ");
    query.push_bind(after.sequence).push(")");
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use time::macros::datetime;

    use super::*;

    #[test]
    fn places_sort_by_time_first() {
        let place = |second: i64, currency: &str, sequence| {
            let at = datetime!(2026-11-20 12:00 UTC) + time::Duration::seconds(second);
            LedgerPlace::new(at, currency.parse().unwrap(), sequence)
        };
        let places = [
            place(0, "USD", 9),
            place(1, "EUR", 8),
            place(1, "USD", 2),
            place(1, "USD", 3),
        ];
        assert!(places.is_sorted());
    }

    #[test]
    fn what_is_no_place_is_refused() {
        for text in [
            "",
            "1",
            "1 USD",
            "1 usd 1",
            "x USD 1",
            "1 USD x",
            "1 USD 1 1",
            "9223372036854775807 USD 1",
        ] {
            assert_eq!(text.parse::<LedgerPlace>(), Err(NoPlace), "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_place_reads_back(micros in 0..253_402_300_799_999_999_i64, sequence in any::<i64>()) {
            let at = OffsetDateTime::from_unix_timestamp_nanos(i128::from(micros) * 1_000).unwrap();
            let place = LedgerPlace::new(at, "KWD".parse().unwrap(), sequence);
            prop_assert_eq!(place.booked_at(), Some(at));
            prop_assert_eq!(place.to_string().parse(), Ok(place));
        }

        #[test]
        fn any_text_is_a_place_or_none(text in "-?[0-9]{0,20} [A-Z]{2,4} -?[0-9]{0,20}") {
            if let Ok(place) = text.parse::<LedgerPlace>() {
                prop_assert_eq!(place.to_string().parse(), Ok(place));
            }
        }
    }
}
