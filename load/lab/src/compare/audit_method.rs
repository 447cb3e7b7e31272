//! Audit methods of contenders: the full API audit for service and peer, row counts for the floor.

use sqlx::postgres::PgConnectOptions;
use sqlx::{Connection, PgConnection};
use vouchsafe_api_client::partner::PartnerClient;
use vouchsafe_load::audit::{Audit, Check, WalletBalances, audit, check_responses, read_wallets};
use vouchsafe_load::tally::acknowledgements::Acknowledgements;

#[derive(Clone, Debug)]
pub(crate) enum AuditMethod {
    Api,
    Rows(Box<PgConnectOptions>),
}

/// State before a turn.
pub(crate) enum Baseline {
    Wallets(WalletBalances),
    Rows(FloorRowCounts),
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
        })
    }

    pub(crate) async fn audit(
        &self,
        auditor: &mut PartnerClient,
        opening: Baseline,
        mut acknowledgements: Acknowledgements,
    ) -> anyhow::Result<Audit> {
        if let Baseline::Wallets(opening) = opening {
            return Ok(audit(auditor, acknowledgements, Some(opening)).await);
        }
        let settled = match acknowledgements.unsettled.len() {
            0 => Ok("0 open".to_owned()),
            open => Err(format!("{open} open; this contender stores no keys")),
        };
        let mut checks = check_responses(settled, &mut acknowledgements).to_vec();
        if let (Self::Rows(options), Baseline::Rows(before)) = (self, opening) {
            let after = count_floor_rows(options).await?;
            let growth = check_row_growth(before, after, acknowledgements.orders);
            checks.push(Check::new("rows", growth));
        }
        Ok(Audit { checks })
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

#[cfg(test)]
mod tests {
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
}
