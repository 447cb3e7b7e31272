//! Counters of partners with caps.

use sqlx::PgPool;
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
    let since: Vec<Option<Uuid>> = columns
        .iter()
        .map(|counter| counter.since.map(|id| id.as_uuid()))
        .collect();
    let caps: Vec<Option<i64>> = checks.iter().map(|check| check.cap).collect();
    sqlx::query_scalar!(
        r#"SELECT cap_usage_v1($1, c.kind, c.currency, c.credential, c.day, c.since, c.cap) AS "used!"
             FROM unnest($2::text[], $3::text[], $4::uuid[], $5::date[], $6::uuid[], $7::bigint[])
                  WITH ORDINALITY AS c (kind, currency, credential, day, since, cap, n)
            ORDER BY c.n"#,
        partner_id as _,
        &kinds as _,
        &currencies as _,
        &credentials as _,
        &days as _,
        &since as _,
        &caps as _,
    )
    .fetch_all(pool)
    .await
}

/// Removes the counters of days that ended a week ago.
pub(super) async fn purge(pool: &PgPool) -> Result<(), sqlx::Error> {
    sqlx::query!("DELETE FROM partner_usage WHERE day < (now() AT TIME ZONE 'UTC')::date - 7")
        .execute(pool)
        .await
        .map(drop)
}
