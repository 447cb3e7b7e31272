//! Sales of all nodes by day, for 30 days.

use std::time::Duration;

use vouchsafe_database::boxed;
use vouchsafe_database::error::StoreError;
use vouchsafe_domain::money::{Amount, Currency};
use vouchsafe_domain::sales::{Sales, Sold};

use crate::traffic::Traffic;

/// Entries of a list: a partner or product beyond it is found in its own lists.
const TOP: i64 = 10;

/// Sales of today and of yesterday, in UTC.
#[derive(Debug)]
pub struct SalesRow {
    /// `currency`, `partner` or `product`.
    pub kind: String,
    /// ID of the partner or product; empty for a currency.
    pub key: String,
    pub currency: Currency,
    pub orders_today: i64,
    pub vouchers_today: i64,
    pub total_today: Amount,
    pub orders_yesterday: i64,
    pub vouchers_yesterday: i64,
    pub total_yesterday: Amount,
}

impl Traffic {
    /// Adds what a node has sold in a period that ends now to the day in which the middle of the period lies,
    /// by the clock of the database, and removes days that are too old. Not to be repeated: sales would be
    /// added twice.
    #[boxed]
    pub async fn add_sales(&self, period: Duration, sales: Sales) -> Result<(), StoreError> {
        // In this order the rows are locked.
        let partners = sales.partners.iter();
        let partners = partners.map(|((id, currency), sold)| ("partner", id.to_string(), currency, sold));
        let products = sales.products.iter();
        let products = products.map(|((id, currency), sold)| ("product", id.to_string(), currency, sold));
        let mut columns = (vec![], vec![], vec![], vec![], vec![], vec![]);
        for (kind, key, currency, sold) in partners.chain(products) {
            let Sold {
                orders,
                vouchers,
                total,
            } = *sold;
            columns.0.push(kind.to_owned());
            columns.1.push(key);
            columns.2.push(currency.as_str().to_owned());
            columns.3.push(orders);
            columns.4.push(vouchers);
            columns.5.push(total);
        }
        let (kinds, keys, currencies, orders, vouchers, totals) = columns;
        let statement = sqlx::query!(
            "WITH old AS (DELETE FROM sales_days WHERE day < (now() AT TIME ZONE 'UTC')::date - 30)
             INSERT INTO sales_days AS s (day, kind, key, currency, orders, vouchers, total)
             SELECT ((now() - make_interval(secs => $1)) AT TIME ZONE 'UTC')::date, n.*
               FROM unnest($2::text[], $3::text[], $4::text[], $5::bigint[], $6::bigint[], $7::bigint[]) AS n
             ON CONFLICT (day, kind, key, currency) DO UPDATE
                SET orders = s.orders + EXCLUDED.orders,
                    vouchers = s.vouchers + EXCLUDED.vouchers,
                    total = s.total + EXCLUDED.total",
            period.as_secs_f64() / 2.0,
            &kinds,
            &keys,
            &currencies,
            &orders,
            &vouchers,
            &totals,
        );
        self.0.execute(statement).await
    }

    /// The sales of all currencies, and of the partners and products that have sold most today, by orders.
    #[boxed]
    pub async fn compare_sales(&self) -> Result<Vec<SalesRow>, StoreError> {
        let rows = sqlx::query_as!(
            SalesRow,
            r#"WITH recent AS (
                   SELECT s.*, s.day = (now() AT TIME ZONE 'UTC')::date AS is_today
                     FROM sales_days AS s
                    WHERE s.day >= (now() AT TIME ZONE 'UTC')::date - 1
               ), summed AS (
                   SELECT CASE WHEN GROUPING(s.key) = 1 THEN 'currency' ELSE s.kind END AS kind,
                          COALESCE(s.key, '') AS key,
                          s.currency,
                          COALESCE(sum(s.orders) FILTER (WHERE s.is_today), 0)::bigint AS orders_today,
                          COALESCE(sum(s.vouchers) FILTER (WHERE s.is_today), 0)::bigint AS vouchers_today,
                          COALESCE(sum(s.total) FILTER (WHERE s.is_today), 0)::bigint AS total_today,
                          COALESCE(sum(s.orders) FILTER (WHERE NOT s.is_today), 0)::bigint AS orders_yesterday,
                          COALESCE(sum(s.vouchers) FILTER (WHERE NOT s.is_today), 0)::bigint AS vouchers_yesterday,
                          COALESCE(sum(s.total) FILTER (WHERE NOT s.is_today), 0)::bigint AS total_yesterday
                     FROM recent AS s
                    GROUP BY GROUPING SETS ((s.kind, s.key, s.currency), (s.kind, s.currency))
                   HAVING GROUPING(s.key) = 0 OR s.kind = 'partner'
               ), ranked AS (
                   SELECT s.*,
                          row_number() OVER (
                              PARTITION BY s.kind
                              ORDER BY s.orders_today DESC, s.orders_yesterday DESC, s.key, s.currency
                          ) AS position
                     FROM summed AS s
               )
               SELECT r.kind AS "kind!", r.key AS "key!", r.currency AS "currency!: Currency",
                      r.orders_today AS "orders_today!", r.vouchers_today AS "vouchers_today!",
                      r.total_today AS "total_today!: Amount",
                      r.orders_yesterday AS "orders_yesterday!", r.vouchers_yesterday AS "vouchers_yesterday!",
                      r.total_yesterday AS "total_yesterday!: Amount"
                 FROM ranked AS r
                WHERE r.position <= $1 OR r.kind = 'currency'
                ORDER BY r.kind, r.position"#,
            TOP,
        );
        self.0
            .run(|pool| async move { rows.fetch_all(&pool).await })
            .await
    }
}
