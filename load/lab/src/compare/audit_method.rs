//! Audit methods of contenders: the full API audit for service and peer, row counts for the floor, and response
//! checks for a contender that stores nothing.

use std::collections::HashSet;

use sqlx::postgres::PgConnectOptions;
use sqlx::{Connection, PgConnection};
use vouchsafe_api_client::partner::PartnerClient;
use vouchsafe_load::audit::{Audit, Check, WalletBalances, audit, read_wallets};
use vouchsafe_load::tally::acknowledgements::Acknowledgements;

#[derive(Clone, Debug)]
pub(crate) enum AuditMethod {
    /// Full audit over the API.
    Api,
    /// Row counts of the floor's tables.
    Rows(Box<PgConnectOptions>),
    /// Checks of the responses only.
    Responses,
}

/// State before a turn.
pub(crate) enum Baseline {
    Wallets(WalletBalances),
    Rows(FloorRowCounts),
    Nothing,
}

/// Row counts of the five tables, in the order of `sql/floor_schema.sql`.
pub(crate) type FloorRowCounts = [i64; 5];

const FLOOR_ROWS_SQL: &str = "SELECT
    (SELECT count(*) FROM orders),
    (SELECT count(*) FROM allocations),
    (SELECT count(*) FROM balances),
    (SELECT count(*) FROM ledger),
    (SELECT count(*) FROM events)";

impl AuditMethod {
    /// Reads the state before a turn.
    pub(crate) async fn capture_baseline(&self, auditor: &mut PartnerClient) -> anyhow::Result<Baseline> {
        Ok(match self {
            Self::Api => Baseline::Wallets(read_wallets(auditor).await.map_err(anyhow::Error::msg)?),
            Self::Rows(options) => Baseline::Rows(count_floor_rows(options).await?),
            Self::Responses => Baseline::Nothing,
        })
    }

    pub(crate) async fn audit(
        &self,
        auditor: &mut PartnerClient,
        opening: Baseline,
        acknowledgements: Acknowledgements,
    ) -> anyhow::Result<Audit> {
        Ok(match (self, opening) {
            (Self::Api, Baseline::Wallets(opening)) => audit(auditor, acknowledgements, Some(opening)).await,
            (Self::Rows(options), Baseline::Rows(before)) => {
                let after = count_floor_rows(options).await?;
                let mut checks = check_responses(&acknowledgements);
                checks.push(Check::new(
                    "rows",
                    check_row_growth(before, after, acknowledgements.orders),
                ));
                Audit { checks }
            }
            _ => Audit {
                checks: check_responses(&acknowledgements),
            },
        })
    }
}

/// Counts the rows of the floor's tables.
async fn count_floor_rows(options: &PgConnectOptions) -> sqlx::Result<FloorRowCounts> {
    let mut connection = PgConnection::connect_with(options).await?;
    let (orders, allocations, balances, ledger, events) =
        sqlx::query_as(FLOOR_ROWS_SQL).fetch_one(&mut connection).await?;
    Ok([orders, allocations, balances, ledger, events])
}

/// Checks that each table grew by one row per order.
fn check_row_growth(before: FloorRowCounts, after: FloorRowCounts, orders: u64) -> Result<String, String> {
    let names = ["orders", "allocations", "balances", "ledger", "events"];
    for ((name, before), after) in names.into_iter().zip(before).zip(after) {
        if u64::try_from(after - before) != Ok(orders) {
            return Err(format!("{name}: {} rows for {orders} orders", after - before));
        }
    }
    Ok(format!("{orders} in each of the five tables"))
}

fn check_responses(acknowledgements: &Acknowledgements) -> Vec<Check> {
    let acknowledged = match (&acknowledgements.first_malformed, acknowledgements.orders) {
        (Some(first), _) => Err(format!("invalid order: {}", String::from_utf8_lossy(first))),
        (None, 0) => Err("no order was acknowledged; nothing is proven".to_owned()),
        (None, orders) => Ok(format!("{orders} orders")),
    };
    let distinct: HashSet<u128> = acknowledgements.vouchers.iter().copied().collect();
    let unique = match acknowledgements.vouchers.len() - distinct.len() {
        0 => Ok(format!("{} distinct", distinct.len())),
        repeated => Err(format!("{repeated} repeated")),
    };
    let settled = match acknowledgements.unsettled.len() {
        0 => Ok("0 open".to_owned()),
        open => Err(format!("{open} open; this contender stores no keys")),
    };
    vec![
        Check::new("unknown outcomes settled", settled),
        Check::new("orders acknowledged", acknowledged),
        Check::new("vouchers unique", unique),
    ]
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    #[test]
    fn row_growth_equals_acknowledged_orders() {
        assert!(check_row_growth([1; 5], [4; 5], 3).is_ok());
        assert_eq!(
            check_row_growth([1; 5], [4, 4, 3, 4, 4], 3).unwrap_err(),
            "balances: 2 rows for 3 orders"
        );
        assert!(
            check_row_growth([0; 5], [4; 5], 3).is_err(),
            "an unacknowledged row"
        );
    }

    #[test]
    fn duplicate_voucher_is_found_in_responses() {
        let response = |voucher: u128| {
            Bytes::from(format!(
                r#"{{"order_id":"o","status":"DELIVERED","total_amount":1,"currency":"USD",
                "vouchers":[{{"voucher_id":"vch_{voucher:032x}"}}]}}"#
            ))
        };
        let mut acknowledgements = Acknowledgements::new(0);
        let failed_checks = |acknowledgements: &Acknowledgements| {
            let checks = check_responses(acknowledgements)
                .into_iter()
                .filter(|check| !check.passed);
            checks.map(|check| check.name).collect::<Vec<_>>()
        };
        assert_eq!(failed_checks(&acknowledgements), ["orders acknowledged"]);
        acknowledgements.record(0, "k1", &Bytes::new(), 201, &response(1));
        assert!(failed_checks(&acknowledgements).is_empty());
        acknowledgements.record(0, "k2", &Bytes::new(), 201, &response(1));
        assert_eq!(failed_checks(&acknowledgements), ["vouchers unique"]);
    }
}
