//! `GET /traffic`: traffic of all nodes, from the stored minutes.

use actix_web::HttpResponse;
use time::Duration;
use vouchsafe_domain::period::Period;
use vouchsafe_store::TrafficRow;
use vouchsafe_wire::operator::live::{MAX_TRAFFIC_RANGE, TrafficList, TrafficSample};

use crate::api::error::ApiResult;
use crate::api::list_request::ValidatedQuery;
use crate::api::operator::reports::Reports;

/// Periods of a response: as many as a chart has room for.
const MAX_PERIODS: i64 = 360;

/// Range without `from`.
const DEFAULT_RANGE: Duration = Duration::days(1);

/// `GET /traffic`.
pub(super) async fn list(reports: Reports, ValidatedQuery(period): ValidatedQuery<Period>) -> ApiResult {
    let now = reports.now();
    let to = period.to.unwrap_or(now).min(now + Duration::MINUTE);
    let from = period
        .from
        .unwrap_or(to - DEFAULT_RANGE)
        .max(now - MAX_TRAFFIC_RANGE);
    let step_minutes = step_minutes(to - from);
    let rows = reports.read(async |store| store.traffic.list(from, to, step_minutes).await);
    Ok(HttpResponse::Ok().json(TrafficList {
        step_s: step_minutes * 60,
        data: rows.await?.iter().map(sample).collect(),
    }))
}

fn step_minutes(range: Duration) -> i32 {
    let minutes = range.whole_minutes().max(1);
    i32::try_from(minutes.div_euclid(MAX_PERIODS) + i64::from(minutes % MAX_PERIODS > 0)).unwrap_or(i32::MAX)
}

#[allow(clippy::cast_precision_loss, reason = "counts of minutes are far below 2^52")]
fn sample(row: &TrafficRow) -> TrafficSample {
    let per_second = |count: i64| count as f64 / (row.minutes * 60) as f64;
    let millis = |micros: i32| f64::from(micros) / 1_000.0;
    TrafficSample {
        at: row.at,
        requests_per_s: per_second(row.requests),
        orders_per_s: per_second(row.orders),
        unavailable_share: row.unavailable as f64 / row.requests.max(1) as f64,
        order_p50_ms: row.order_p50_us.map(millis),
        order_p99_ms: row.order_p99_us.map(millis),
        commit_ms: millis(row.commit_us),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn range_has_at_most_as_many_periods_as_a_chart_has_room_for() {
        for (range, expected) in [
            (Duration::ZERO, 1),
            (Duration::hours(6), 1),
            (Duration::minutes(361), 2),
            (Duration::days(1), 4),
            (Duration::days(30), 120),
            (Duration::days(-1), 1),
        ] {
            assert_eq!(step_minutes(range), expected, "{range}");
        }
    }
}
