//! Live figures of this node: one sampler reads them each second for the overview and every console.

mod actor_histories;
mod traffic;

use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use bytes::Bytes;
use parking_lot::{Mutex, MutexGuard};
use time::OffsetDateTime;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tracing::warn;
use vouchsafe_actors::engine::Engine;
use vouchsafe_domain::order::trace::to_micros;
use vouchsafe_domain::product::Product;
use vouchsafe_domain::stock::level::{RecentSales, StockLevel};
use vouchsafe_store::PeriodCounts;
use vouchsafe_wire::operator::live::{Overview, Sample, SamplePeriod};

pub(crate) use self::actor_histories::ActorHistories;
pub(crate) use self::traffic::Traffic;
use self::traffic::TrafficCounts;

/// Ten minutes.
const SECONDS: usize = 600;

/// Six hours.
const TENS_OF_SECONDS: usize = 2_160;

/// Less half a tick: the ticks are not exact.
const TEN_SECONDS: Duration = Duration::from_millis(9_500);

/// Open live feeds. Each costs a message per second.
const MAX_FEEDS: usize = 64;

/// Age up to which an event is shown as the state of now: a second, and the delay of a tick.
const RECENT: Duration = Duration::from_millis(1_500);

/// SKUs with little stock that metrics name, and that the overview shows.
const LOW_STOCK: usize = 50;
pub(crate) const SHOWN_LOW_STOCK: usize = 10;

/// Stock that lasts for less is low.
const LOW_STOCK_DAYS: f64 = 7.0;

/// A SKU with little stock.
pub(crate) type LowStock = (StockLevel, RecentSales);

/// The SKUs with little stock.
#[derive(Debug, Clone, Default)]
pub(crate) struct LowStockSkus {
    /// The number of all of them.
    pub(crate) count: usize,
    /// Up to [`LOW_STOCK`], those that last for the shortest time first.
    pub(crate) lowest: Vec<LowStock>,
}

impl LowStockSkus {
    /// Adds SKUs with little stock.
    pub(crate) fn extend(&mut self, levels: impl Iterator<Item = LowStock>) {
        let before = self.lowest.len();
        self.lowest.extend(levels);
        self.count += self.lowest.len() - before;
        let days_left = |(_, sales): &LowStock| sales.days_left.unwrap_or(f64::INFINITY);
        self.lowest
            .sort_by(|left, right| days_left(left).total_cmp(&days_left(right)));
        self.lowest.truncate(LOW_STOCK);
    }
}

/// The samples of the last hours, and the open feeds.
#[derive(Debug)]
pub(crate) struct Live {
    series: Mutex<Series>,
    /// The last event of the feed.
    event: watch::Sender<Arc<FeedEvent>>,
    feeds: Arc<Semaphore>,
    low_stock: Mutex<LowStockSkus>,
    overview: Mutex<Option<Arc<Overview>>>,
    pub(crate) actor_histories: ActorHistories,
}

#[derive(Debug, Default)]
struct Series {
    seconds: VecDeque<Sample>,
    tens: VecDeque<Sample>,
    /// The counts of the seconds since the last sample of ten seconds.
    since_ten: TrafficCounts,
    /// The counts since the last [`Live::take_unstored`], and the longest of the last commits.
    unstored: (TrafficCounts, Duration),
}

/// An event of the feed, rendered once for all that follow it.
#[derive(Debug, Default)]
pub(crate) struct FeedEvent {
    json: Bytes,
    /// `None` before the first event.
    read_at: Option<Instant>,
    text: [OnceLock<Bytes>; 2],
}

/// What the feed sends.
#[derive(Debug, Clone, Copy)]
pub(crate) enum FeedFormat {
    /// An event `sample` with JSON.
    Json,
    /// An event for each live table of the console.
    Console,
}

impl FeedEvent {
    /// The server-sent events of this event.
    pub(crate) fn text(&self, format: FeedFormat) -> Bytes {
        let render = || match format {
            FeedFormat::Json => format!("event: sample\ndata: {}\n\n", String::from_utf8_lossy(&self.json)),
            FeedFormat::Console => vouchsafe_console::render_event(&self.json),
        };
        self.text[format as usize].get_or_init(|| render().into()).clone()
    }
}

/// A client that follows the feed.
pub(crate) struct Feed {
    pub(crate) events: watch::Receiver<Arc<FeedEvent>>,
    _permit: OwnedSemaphorePermit,
}

impl Default for Live {
    fn default() -> Self {
        Self {
            series: Mutex::default(),
            event: watch::Sender::new(Arc::default()),
            feeds: Arc::new(Semaphore::new(MAX_FEEDS)),
            low_stock: Mutex::default(),
            overview: Mutex::default(),
            actor_histories: ActorHistories::default(),
        }
    }
}

impl Live {
    /// Adds the traffic of the last second. Returns its sample.
    pub(crate) fn record(&self, traffic: &Traffic, engine: &Engine, now: OffsetDateTime) -> Sample {
        let counts = traffic.take();
        let commits = engine.lanes().into_iter().map(|lane| lane.last_commit);
        let commit = commits.max().unwrap_or_default();
        let sample = |counts: &TrafficCounts| Sample {
            at: now,
            requests_per_s: counts.per_second(counts.requests),
            orders_per_s: counts.per_second(counts.orders),
            unavailable_share: share(counts.unavailable, counts.requests),
            order_p50_ms: counts.order_times.quantile(50).map(millis),
            order_p99_ms: counts.order_times.quantile(99).map(millis),
            commit_ms: millis(commit),
            records_in_flight: engine.in_flight(),
        };
        let second = sample(&counts);
        let mut series = self.series();
        push(&mut series.seconds, second, SECONDS);
        series.since_ten.add(&counts);
        series.unstored.0.add(&counts);
        series.unstored.1 = series.unstored.1.max(commit);
        if series.since_ten.period >= TEN_SECONDS {
            let ten = sample(&std::mem::take(&mut series.since_ten));
            push(&mut series.tens, ten, TENS_OF_SECONDS);
        }
        second
    }

    /// The counts since the last call, or since the start.
    pub(crate) fn take_unstored(&self) -> PeriodCounts {
        let (counts, commit) = std::mem::take(&mut self.series().unstored);
        let quantile = |percent| counts.order_times.quantile(percent).map(to_micros);
        PeriodCounts {
            period: counts.period,
            requests: counts.requests,
            unavailable: counts.unavailable,
            orders: counts.orders,
            order_p50_us: quantile(50),
            order_p99_us: quantile(99),
            commit_us: to_micros(commit),
        }
    }

    /// The samples of a period, oldest first.
    pub(crate) fn samples(&self, period: SamplePeriod) -> Vec<Sample> {
        let series = self.series();
        match period {
            SamplePeriod::Second => series.seconds.iter().copied().collect(),
            SamplePeriod::TenSeconds => series.tens.iter().copied().collect(),
        }
    }

    /// The traffic of the last second; `None` in the first one.
    pub(crate) fn last_second(&self) -> Option<Sample> {
        self.series().seconds.back().copied()
    }

    /// The traffic of the last ten seconds that are complete.
    pub(crate) fn latest(&self) -> Option<Sample> {
        self.series().tens.back().copied()
    }

    /// Follows the feed; `None` if too many consoles do.
    pub(crate) fn follow(&self) -> Option<Feed> {
        let _permit = Arc::clone(&self.feeds).try_acquire_owned().ok()?;
        let mut events = self.event.subscribe();
        // The current event is up to a second old or, without other feeds, older.
        events.mark_unchanged();
        Some(Feed { events, _permit })
    }

    /// Whether a console follows the feed.
    pub(crate) fn is_followed(&self) -> bool {
        self.event.receiver_count() > 0
    }

    /// The last event as JSON, unless it is too old. Reading all actors for each page would cost orders more
    /// than the pages are worth.
    pub(crate) fn recent_event(&self) -> Option<Bytes> {
        let event = self.event.borrow();
        let is_recent = event.read_at.is_some_and(|at| at.elapsed() < RECENT);
        is_recent.then(|| event.json.clone())
    }

    /// Sends an event to all feeds.
    pub(crate) fn publish(&self, event: &impl serde::Serialize) {
        match serde_json::to_vec(event) {
            Ok(json) => {
                let event = FeedEvent {
                    json: json.into(),
                    read_at: Some(Instant::now()),
                    text: Default::default(),
                };
                drop(self.event.send_replace(Arc::new(event)));
            }
            Err(error) => warn!(error.message = %error, "cannot write an event of the live feed"),
        }
    }

    pub(crate) fn set_low_stock(&self, skus: LowStockSkus) {
        *self.low_stock.lock() = skus;
    }

    pub(crate) fn low_stock(&self) -> LowStockSkus {
        self.low_stock.lock().clone()
    }

    pub(crate) fn set_overview(&self, overview: Option<Arc<Overview>>) {
        *self.overview.lock() = overview;
    }

    /// The overview of the last seconds, if a client follows the feed.
    pub(crate) fn overview(&self) -> Option<Arc<Overview>> {
        self.overview.lock().clone()
    }

    fn series(&self) -> MutexGuard<'_, Series> {
        self.series.lock()
    }
}

/// Whether a SKU that is sold has less stock than its product's limit, or may not last.
pub(crate) fn is_low(level: &StockLevel, sales: Option<&RecentSales>, product: &Product) -> bool {
    let days_left = sales.and_then(|sales| sales.days_left);
    let is_below_limit = level.free < i64::from(product.low_stock_at);
    !product.discontinued && (is_below_limit || days_left.is_some_and(|days| days < LOW_STOCK_DAYS))
}

fn push(samples: &mut VecDeque<Sample>, sample: Sample, limit: usize) {
    if samples.len() == limit {
        samples.pop_front();
    }
    samples.push_back(sample);
}

fn share(part: u32, whole: u32) -> f64 {
    if whole == 0 {
        return 0.0;
    }
    (f64::from(part) / f64::from(whole)).min(1.0)
}

/// Milliseconds of whole microseconds: a product with 1,000 would print digits that no clock measured.
fn millis(duration: Duration) -> f64 {
    let micros = u32::try_from(duration.as_micros()).unwrap_or(u32::MAX);
    f64::from(micros) / 1_000.0
}
