//! Audit of a turn: the API for service and peer, the rows of its tables for the floor; every measured order
//! must be sold.

use sqlx::postgres::PgConnectOptions;
use sqlx::{Connection, PgConnection};
use vouchsafe_api_client::partner::PartnerClient;

use crate::audit::{Audit, AuditedPartner, Check, audit_all, check_responses, read_wallets};
use crate::tally::acknowledgements::Acknowledgements;

/// The only allowed outcome in a turn that counts.
const SOLD: &str = "201";

/// Rows of the floor's tables.
const FLOOR_TABLES: [&str; 5] = ["orders", "allocations", "balances", "ledger", "events"];

/// Audit method with the state before the turn.
pub(super) enum TurnAudit {
    Api(Box<AuditedPartner>),
    Rows(Box<PgConnectOptions>, Vec<i64>),
}

impl TurnAudit {
    pub(super) async fn of_api(mut client: PartnerClient) -> anyhow::Result<Self> {
        let opening = read_wallets(&mut client).await.map_err(anyhow::Error::msg)?;
        let partner = AuditedPartner::without_order_check(client, Some(opening));
        Ok(Self::Api(Box::new(partner)))
    }

    pub(super) async fn of_rows(database: &PgConnectOptions) -> anyhow::Result<Self> {
        Ok(Self::Rows(
            Box::new(database.clone()),
            count_rows(database).await?,
        ))
    }

    pub(super) async fn audit(self, mut acknowledgements: Acknowledgements) -> anyhow::Result<Audit> {
        let (database, before) = match self {
            Self::Api(mut partner) => {
                let partners = std::slice::from_mut(&mut *partner);
                return Ok(audit_all(partners, acknowledgements).await.0);
            }
            Self::Rows(database, before) => (database, before),
        };
        let settled = match acknowledgements.unsettled.len() {
            0 => Ok("0 open".to_owned()),
            open => Err(format!("{open} open; this contender stores no keys")),
        };
        let mut checks = check_responses(settled, &mut acknowledgements).to_vec();
        let growth = check_row_growth(&before, &count_rows(&database).await?, acknowledgements.orders);
        checks.push(Check::new("rows", growth));
        Ok(Audit { checks })
    }
}

/// Checks that no order had another outcome.
pub(super) fn check_all_sold<'a>(mut outcomes: impl Iterator<Item = (&'a String, &'a u64)>) -> Check {
    let other = outcomes.find(|(outcome, _)| *outcome != SOLD);
    let result = other.map_or(Ok(String::new()), |(outcome, count)| {
        Err(format!("{count} × {outcome}"))
    });
    Check::new("all orders sold", result)
}

/// Rows by table.
async fn count_rows(database: &PgConnectOptions) -> sqlx::Result<Vec<i64>> {
    let mut connection = PgConnection::connect_with(database).await?;
    let mut counts = Vec::new();
    for table in FLOOR_TABLES {
        let count = format!("SELECT count(*) FROM {table}");
        counts.push(
            sqlx::query_scalar(sqlx::AssertSqlSafe(count))
                .fetch_one(&mut connection)
                .await?,
        );
    }
    Ok(counts)
}

/// Checks that each table grew by one row per order.
fn check_row_growth(before: &[i64], after: &[i64], orders: u64) -> Result<String, String> {
    for ((table, before), after) in FLOOR_TABLES.into_iter().zip(before).zip(after) {
        if u64::try_from(after - before) != Ok(orders) {
            return Err(format!("{table}: {} rows for {orders} orders", after - before));
        }
    }
    Ok(format!("{orders} in each of the five tables"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn row_growth_equals_acknowledged_orders() {
        assert!(check_row_growth(&[1; 5], &[4; 5], 3).is_ok());
        let lost = check_row_growth(&[1; 5], &[4, 4, 3, 4, 4], 3);
        assert_eq!(lost, Err("balances: 2 rows for 3 orders".to_owned()));
        assert!(
            check_row_growth(&[0; 5], &[4; 5], 3).is_err(),
            "an unacknowledged row"
        );
    }

    #[test]
    fn turn_with_another_outcome_does_not_count() {
        let outcomes = |codes: &[&str]| {
            codes
                .iter()
                .map(|code| ((*code).to_owned(), 3))
                .collect::<Vec<_>>()
        };
        let check = |codes| check_all_sold(outcomes(codes).iter().map(|(code, count)| (code, count)));
        assert!(check(&["201"]).passed);
        assert_eq!(
            check(&["201", "409 INSUFFICIENT_INVENTORY"]).detail,
            "3 × 409 INSUFFICIENT_INVENTORY"
        );
    }
}
