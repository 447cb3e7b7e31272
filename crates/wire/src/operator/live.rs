//! Samples of a node's traffic, and the overview of a deployment.

use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr, VariantArray};
use time::OffsetDateTime;
use utoipa::{IntoParams, ToSchema};
use vouchsafe_domain::ids::PartnerId;
use vouchsafe_domain::money::{Currency, Money};
use vouchsafe_domain::overview::OpenWork;
use vouchsafe_domain::product::ProductId;
use vouchsafe_domain::replication::Replication;

use super::actors::LiveActors;
use super::stock::level::StockLevelBody;

/// Query of `GET /samples`.
#[derive(Debug, Default, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct SamplesQuery {
    /// Distance of the samples: `second` for the last ten minutes, `ten_seconds` for the last six hours.
    #[serde(default)]
    #[param(inline, required = false)]
    pub period: SamplePeriod,
}

/// Length of the period of a sample.
#[derive(
    Debug,
    Clone,
    Copy,
    Default,
    PartialEq,
    Eq,
    Serialize,
    Deserialize,
    ToSchema,
    EnumString,
    IntoStaticStr,
    VariantArray,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum SamplePeriod {
    #[default]
    Second,
    TenSeconds,
}

/// Traffic of the node that responds, in one period.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, ToSchema)]
pub struct Sample {
    /// End of the period.
    #[serde(with = "vouchsafe_domain::timestamp")]
    pub at: OffsetDateTime,
    /// Requests of partners per second.
    pub requests_per_s: f64,
    /// `POST /orders` per second that were answered with 2xx.
    pub orders_per_s: f64,
    /// Share of the partners' requests that were answered with 503.
    pub unavailable_share: f64,
    /// Half of these orders were answered in less than this time. Milliseconds; null without orders.
    #[schema(required)]
    pub order_p50_ms: Option<f64>,
    /// 99 of 100 of these orders were answered in less than this time. Milliseconds; null without orders.
    #[schema(required)]
    pub order_p99_ms: Option<f64>,
    /// Duration of the last commit of the lane in which it took longest; 0 before the first. Milliseconds.
    pub commit_ms: f64,
    /// Records between decision and verdict, at the end of the period.
    pub records_in_flight: usize,
}

/// Traffic of all nodes in a period.
#[derive(Debug, Serialize, ToSchema)]
pub struct TrafficSample {
    /// Start of the period.
    #[serde(with = "vouchsafe_domain::timestamp")]
    pub at: OffsetDateTime,
    /// Requests of partners per second, of all nodes.
    pub requests_per_s: f64,
    /// `POST /orders` per second that were answered with 2xx, of all nodes.
    pub orders_per_s: f64,
    /// Share of the partners' requests that were answered with 503.
    pub unavailable_share: f64,
    /// Half of these orders were answered in less than this time, in the slowest minute on the slowest node.
    /// Milliseconds; null without orders.
    #[schema(required)]
    pub order_p50_ms: Option<f64>,
    /// 99 of 100 of these orders were answered in less than this time, in the slowest minute on the slowest
    /// node. Milliseconds; null without orders.
    #[schema(required)]
    pub order_p99_ms: Option<f64>,
    /// The longest of the last commits of the lanes, seen once a second. Milliseconds.
    pub commit_ms: f64,
}

/// Traffic of all nodes, oldest first.
#[derive(Debug, Serialize, ToSchema)]
pub struct TrafficList {
    /// Seconds of a period: a minute, or longer so that a range has at most 360 periods.
    pub step_s: i32,
    /// A period in which no node ran has no entry.
    pub data: Vec<TrafficSample>,
}

/// Samples, oldest first.
#[derive(Debug, Serialize, ToSchema)]
pub struct SampleList {
    pub data: Vec<Sample>,
}

/// An event of the live feed: the traffic of the last second, the waiting work and the busiest actors.
#[derive(Serialize, ToSchema)]
pub struct LiveEvent<'a> {
    /// Traffic of the last second; null in the first second of the process.
    #[schema(required)]
    pub sample: Option<Sample>,
    /// State of the deployment, read every five seconds while a client follows the feed; null before.
    #[schema(required)]
    pub overview: Option<&'a Overview>,
    /// The busiest actors.
    pub actors: &'a LiveActors,
}

/// Accepted orders of today against those of yesterday, whatever became of them. Days are in UTC.
#[derive(Debug, Serialize, ToSchema)]
pub struct SalesComparison {
    /// The partner; null for currencies and products.
    #[schema(required, value_type = Option<PartnerId>)]
    pub partner_id: Option<String>,
    /// The product; null for currencies and partners.
    #[schema(required, value_type = Option<ProductId>)]
    pub product_id: Option<String>,
    /// Currency of the amounts.
    pub currency: Currency,
    /// Orders of today; for a product, lines of orders.
    pub orders_today: i64,
    /// Vouchers ordered today.
    pub vouchers_today: i64,
    /// Total of today's orders.
    pub amount_today: Money,
    /// Orders of yesterday; for a product, lines of orders.
    pub orders_yesterday: i64,
    /// Vouchers ordered yesterday.
    pub vouchers_yesterday: i64,
    /// Total of yesterday's orders.
    pub amount_yesterday: Money,
}

/// Sales of today and yesterday. Each node adds its own once a minute.
#[derive(Debug, Default, Serialize, ToSchema)]
pub struct SalesOverview {
    /// All currencies, those with most orders first.
    pub by_currency: Vec<SalesComparison>,
    /// The ten partners with most orders today, in each of their currencies.
    pub by_partner: Vec<SalesComparison>,
    /// The ten products with most lines of orders today.
    pub by_product: Vec<SalesComparison>,
}

/// State of a deployment and of one of its nodes.
#[derive(Debug, Serialize, ToSchema)]
pub struct Overview {
    /// The node that responds.
    pub node: String,
    /// Version of its program.
    pub version: &'static str,
    /// `sandbox` or `production`.
    pub environment: &'static str,
    /// Whether the node accepts orders.
    pub is_ready: bool,
    /// Whether commits wait for a standby, as the node has found.
    pub replication: Replication,
    /// Seconds by which the standby that serves lists is behind; null without one, and while it is not read.
    #[schema(required)]
    pub replica_lag_s: Option<f64>,
    /// Traffic of the node in the last ten seconds that are complete; null in its first seconds.
    #[schema(required)]
    pub traffic: Option<Sample>,
    #[serde(flatten)]
    pub work: OpenWork,
    pub sales: SalesOverview,
    /// Vendors whose circuit breaker on this node is not closed.
    pub circuits_open: usize,
    /// Targets of the audit export that this node has not brought up to date for more than a minute.
    pub exports_behind: usize,
    /// SKUs that sell and whose stock lasts for less than seven days. Counted once a minute.
    pub low_stock_skus: usize,
    /// The ten SKUs whose stock lasts for the shortest time, if for less than seven days. Counted once a
    /// minute.
    pub low_stock: Vec<StockLevelBody>,
}
