//! `GET /traffic`: traffic of all nodes, from the stored minutes.

use actix_web::HttpResponse;
use time::Duration;
use vouchsafe_domain::period::Period;
use vouchsafe_store::TrafficRow;
use vouchsafe_wire::operator::live::{TrafficList, TrafficSample};

use crate::api::error::ApiResult;
use crate::api::list_request::ValidatedQuery;
use crate::api::operator::chart_range::ChartRange;
use crate::api::operator::reports::Reports;

/// Range without `from`.
const DEFAULT_RANGE: Duration = Duration::days(1);

/// `GET /traffic`.
pub(super) async fn list(reports: Reports, ValidatedQuery(period): ValidatedQuery<Period>) -> ApiResult {
    let ChartRange { from, to, step } =
        ChartRange::new(period, reports.now(), Duration::MINUTE, DEFAULT_RANGE);
    let rows = reports.read(async |store| store.traffic.list(from, to, step).await);
    Ok(HttpResponse::Ok().json(TrafficList {
        step_s: step * 60,
        data: rows.await?.iter().map(sample).collect(),
    }))
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
