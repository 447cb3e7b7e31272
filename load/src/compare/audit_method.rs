//! Did whoever was loaded do what it acknowledged? The service and the peer are asked over the wire; the floor's rows are
//! counted, since it keeps nothing else; and of who writes nothing, the answers alone are looked at.

use std::collections::HashSet;

use sqlx::postgres::PgConnectOptions;
use sqlx::{Connection, PgConnection};

use crate::audit::{Audit, Check, WalletBalances, audit, read_wallets};
use crate::acknowledgements::Acknowledgements;
use crate::partner::PartnerClient;

/// How a contender is audited.
#[derive(Clone, Debug)]
pub enum AuditMethod {
    /// By the whole audit.
    Api,
    /// By the rows of the floor's tables.
    Rows(Box<PgConnectOptions>),
    /// By its answers: it keeps nothing.
    Responses,
}

/// What was there before a turn.
pub enum Baseline {
    Wallets(WalletBalances),
    Rows(FloorRowCounts),
    Nothing,
}

/// Rows of the five tables, in their order in `sql/floor_schema.sql`.
pub type FloorRowCounts = [i64; 5];

const FLOOR_ROWS: &str = "SELECT
    (SELECT count(*) FROM orders),
    (SELECT count(*) FROM allocations),
    (SELECT count(*) FROM balances),
    (SELECT count(*) FROM ledger),
    (SELECT count(*) FROM events)";

impl AuditMethod {
    /// Looks before a turn.
    ///
    /// # Errors
    /// When what is there cannot be read.
    pub async fn capture_baseline(&self, auditor: &mut PartnerClient) -> anyhow::Result<Baseline> {
        Ok(match self {
            Self::Api => Baseline::Wallets(read_wallets(auditor).await.map_err(anyhow::Error::msg)?),
            Self::Rows(options) => Baseline::Rows(count_floor_rows(options).await?),
            Self::Responses => Baseline::Nothing,
        })
    }

    /// Audits a turn.
    ///
    /// # Errors
    /// When rows cannot be counted; what the wire does not tell is a failed check.
    pub async fn audit(
        &self,
        auditor: &mut PartnerClient,
        opening: Baseline,
        books: Acknowledgements,
    ) -> anyhow::Result<Audit> {
        Ok(match (self, opening) {
            (Self::Api, Baseline::Wallets(opening)) => audit(auditor, books, Some(opening)).await,
            (Self::Rows(options), Baseline::Rows(before)) => {
                let after = count_floor_rows(options).await?;
                let mut checks = answers(&books);
                checks.push(Check::new("rows", check_row_growth(before, after, books.orders)));
                Audit { checks }
            }
            _ => Audit {
                checks: answers(&books),
            },
        })
    }
}

/// Counts the rows of the floor.
///
/// # Errors
/// When the database refuses.
pub async fn count_floor_rows(options: &PgConnectOptions) -> sqlx::Result<FloorRowCounts> {
    let mut connection = PgConnection::connect_with(options).await?;
    let (orders, allocations, balances, ledger, events) =
        sqlx::query_as(FLOOR_ROWS).fetch_one(&mut connection).await?;
    Ok([orders, allocations, balances, ledger, events])
}

/// Whether each table grew by a row an order.
///
/// # Errors
/// A sentence with the first that did not.
pub fn check_row_growth(before: FloorRowCounts, after: FloorRowCounts, orders: u64) -> Result<String, String> {
    let names = ["orders", "allocations", "balances", "ledger", "events"];
    for ((name, before), after) in names.into_iter().zip(before).zip(after) {
        if u64::try_from(after - before) != Ok(orders) {
            return Err(format!("{name}: {} rows for {orders} orders", after - before));
        }
    }
    Ok(format!("{orders} in each of five tables"))
}

fn answers(books: &Acknowledgements) -> Vec<Check> {
    let acknowledged = match (&books.first_malformed, books.orders) {
        (Some(first), _) => Err(format!("not an order: {}", String::from_utf8_lossy(first))),
        (None, 0) => Err("none, so nothing is proven".to_owned()),
        (None, orders) => Ok(format!("{orders} orders")),
    };
    let distinct: HashSet<u128> = books.vouchers.iter().copied().collect();
    let unique = match books.vouchers.len() - distinct.len() {
        0 => Ok(format!("{} distinct", distinct.len())),
        repeated => Err(format!("{repeated} repeated")),
    };
    let settled = match books.unsettled.len() {
        0 => Ok("0 open".to_owned()),
        open => Err(format!("{open} open, and no key to settle them by")),
    };
    vec![
        Check::new("unknown outcomes settled", settled),
        Check::new("orders acknowledged", acknowledged),
        Check::new("no voucher twice", unique),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    #[test]
    fn each_table_grows_by_what_was_acknowledged() {
        assert!(check_row_growth([1; 5], [4; 5], 3).is_ok());
        assert_eq!(
            check_row_growth([1; 5], [4, 4, 3, 4, 4], 3).unwrap_err(),
            "balances: 2 rows for 3 orders"
        );
        assert!(
            check_row_growth([0; 5], [4; 5], 3).is_err(),
            "a row that nobody knows of"
        );
    }

    #[test]
    fn a_voucher_given_twice_is_found_in_the_answers() {
        let answer = |voucher: u128| {
            Bytes::from(format!(
                r#"{{"order_id":"o","status":"DELIVERED","total_amount":1,"currency":"USD",
                "vouchers":[{{"voucher_id":"vch_{voucher:032x}"}}]}}"#
            ))
        };
        let mut books = Acknowledgements::new(0);
        let failed = |books: &Acknowledgements| {
            let checks = answers(books).into_iter().filter(|check| !check.passed);
            checks.map(|check| check.name).collect::<Vec<_>>()
        };
        assert_eq!(failed(&books), ["orders acknowledged"]);
        books.record(0, "k1", &Bytes::new(), 201, &answer(1));
        assert!(failed(&books).is_empty());
        books.record(0, "k2", &Bytes::new(), 201, &answer(1));
        assert_eq!(failed(&books), ["no voucher twice"]);
    }
}
