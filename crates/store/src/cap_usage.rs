//! Counters of partners with caps.

use sqlx::{PgConnection, PgPool};
use time::Date;
use uuid::Uuid;
use vouchsafe_domain::cap::CapCheck;
use vouchsafe_domain::ids::PartnerId;
use vouchsafe_domain::money::Currency;

/// Reads the counters of the checks, in their order.
pub(super) async fn read(
    pool: &PgPool,
    partner_id: PartnerId,
    checks: &[CapCheck],
) -> Result<Vec<i64>, sqlx::Error> {
    let columns: Vec<_> = checks.iter().map(|check| check.counter.columns()).collect();
    let kinds: Vec<&str> = columns.iter().map(|counter| counter.kind).collect();
    let currencies: Vec<Option<Currency>> = columns.iter().map(|counter| counter.currency).collect();
    let credentials: Vec<Option<Uuid>> = columns
        .iter()
        .map(|counter| counter.credential_id.map(|id| id.as_uuid()))
        .collect();
    let days: Vec<Option<Date>> = columns.iter().map(|counter| counter.day).collect();
    let windows: Vec<Option<i32>> = columns
        .iter()
        .map(|counter| counter.within_s.map(u32::cast_signed))
        .collect();
    let caps: Vec<Option<i64>> = checks.iter().map(|check| check.cap).collect();
    sqlx::query_scalar!(
        r#"SELECT cap_usage_v1($1, c.kind, c.currency, c.credential, c.day, c.within_s, c.cap) AS "used!"
             FROM unnest($2::text[], $3::text[], $4::uuid[], $5::date[], $6::integer[], $7::bigint[])
                  WITH ORDINALITY AS c (kind, currency, credential, day, within_s, cap, n)
            ORDER BY c.n"#,
        partner_id as _,
        &kinds as _,
        &currencies as _,
        &credentials as _,
        &days as _,
        &windows as _,
        &caps as _,
    )
    .fetch_all(pool)
    .await
}

/// Adds what the partner's wallets have paid for orders to the running totals of its order rate: for a rate
/// that begins, and again with each change of the rate.
pub(super) async fn record_order_totals(
    connection: &mut PgConnection,
    partner_id: PartnerId,
) -> Result<(), sqlx::Error> {
    sqlx::query!(
        r#"SELECT record_order_totals_v1(w.partner_id, w.currency) AS "recorded!: ()"
             FROM wallets AS w
            WHERE w.partner_id = $1
            ORDER BY w.currency"#,
        partner_id as _,
    )
    .execute(connection)
    .await
    .map(drop)
}

/// Removes the counters of days that ended a week ago, and running totals before the last one that precedes
/// every window.
pub(super) async fn purge(pool: &PgPool) -> Result<(), sqlx::Error> {
    sqlx::query!("DELETE FROM partner_usage WHERE day < (now() AT TIME ZONE 'UTC')::date - 7")
        .execute(pool)
        .await?;
    sqlx::query!(
        "DELETE FROM order_totals AS t
          WHERE t.at < now() - interval '25 hours'
            AND EXISTS (SELECT
                          FROM order_totals AS later
                         WHERE later.partner_id = t.partner_id
                           AND later.currency = t.currency
                           AND later.at > t.at
                           AND later.at < now() - interval '25 hours')"
    )
    .execute(pool)
    .await
    .map(drop)
}
