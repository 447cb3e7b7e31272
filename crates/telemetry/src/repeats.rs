//! Deduplication of repeated failures in the log: one line when a condition begins, and one a minute while it
//! lasts.
//!
//! A full disk fails every batch, poll and claim: thousands of equal lines within seconds, on the disk that
//! is full. Of events with `error.message` and level WARN or ERROR, and of those of [`ACCEPT_TARGET`], the
//! log keeps the first of a series. Events belong to a series if they come from one place in the program,
//! name the same objects and follow each other within [`SERIES_GAP`]. Numbers do not count; for errors, which
//! are not retried, the message does.

use std::collections::HashMap;
use std::collections::hash_map::{DefaultHasher, Entry};
use std::fmt::{self, Write as _};
use std::hash::{Hash as _, Hasher as _};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tracing::field::{Field, Visit};
use tracing::subscriber::Interest;
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::{Context, Filter};

/// After this time without an event the next one begins a series. Longer than the longest delay between
/// attempts that log.
const SERIES_GAP: Duration = Duration::from_secs(15);

/// Interval of the lines of a series that lasts.
const REMINDER_INTERVAL: Duration = Duration::from_secs(60);

/// Series in memory. Beyond this number every event is logged until old series end.
const MAX_SERIES: usize = 1_024;

/// Target of actix's failures to accept a connection, which have their error in the message. Without free
/// file descriptors each listener repeats it twice a second while connections wait.
const ACCEPT_TARGET: &str = "actix_server::accept";

/// Rejects the repetitions of a failure.
#[derive(Debug, Default)]
pub(super) struct RepeatFilter {
    series: Mutex<HashMap<u64, Series>>,
}

#[derive(Debug, Clone, Copy)]
struct Series {
    logged_at: Instant,
    last_at: Instant,
}

impl RepeatFilter {
    /// Whether the log keeps an event of this series.
    fn is_new(&self, key: u64, now: Instant) -> bool {
        let mut all = self.series.lock();
        if all.len() >= MAX_SERIES {
            all.retain(|_, series| now.saturating_duration_since(series.last_at) < SERIES_GAP);
        }
        let has_room = all.len() < MAX_SERIES;
        let begin = Series {
            logged_at: now,
            last_at: now,
        };
        match all.entry(key) {
            Entry::Occupied(mut entry) => {
                let series = entry.get_mut();
                let has_ended = now.saturating_duration_since(series.last_at) >= SERIES_GAP;
                series.last_at = now;
                let is_due = now.saturating_duration_since(series.logged_at) >= REMINDER_INTERVAL;
                if has_ended || is_due {
                    *series = begin;
                }
                has_ended || is_due
            }
            Entry::Vacant(entry) => {
                if has_room {
                    entry.insert(begin);
                }
                true
            }
        }
    }
}

impl<S: Subscriber> Filter<S> for RepeatFilter {
    fn enabled(&self, _: &Metadata<'_>, _: &Context<'_, S>) -> bool {
        true
    }

    /// The default would filter a place in the program again each time it is reached.
    fn callsite_enabled(&self, _: &'static Metadata<'static>) -> Interest {
        Interest::always()
    }

    /// The default would hide the level of the other filter from the places in the program.
    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(LevelFilter::TRACE)
    }

    fn event_enabled(&self, event: &Event<'_>, _: &Context<'_, S>) -> bool {
        let metadata = event.metadata();
        let has_error =
            metadata.fields().field("error.message").is_some() || metadata.target() == ACCEPT_TARGET;
        if *metadata.level() > Level::WARN || !has_error {
            return true;
        }
        let mut series = SeriesKey {
            hasher: DefaultHasher::new(),
            counts_message: *metadata.level() == Level::ERROR,
        };
        metadata.callsite().hash(&mut series.hasher);
        event.record(&mut series);
        self.is_new(series.hasher.finish(), Instant::now())
    }
}

/// Hash of the place and the objects of an event.
struct SeriesKey {
    hasher: DefaultHasher,
    counts_message: bool,
}

impl SeriesKey {
    fn counts(&self, field: &Field) -> bool {
        self.counts_message || field.name() != "error.message"
    }
}

impl Visit for SeriesKey {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if self.counts(field) {
            // Writing to a hasher cannot fail.
            let _ = write!(HashWriter(&mut self.hasher), "{value:?}\0");
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        if self.counts(field) {
            value.hash(&mut self.hasher);
        }
    }

    fn record_i64(&mut self, _: &Field, _: i64) {}

    fn record_u64(&mut self, _: &Field, _: u64) {}

    fn record_f64(&mut self, _: &Field, _: f64) {}
}

struct HashWriter<'h>(&'h mut DefaultHasher);

impl fmt::Write for HashWriter<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.write(text.as_bytes());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tracing::{error, warn};
    use tracing_subscriber::filter::{FilterExt, Targets};
    use tracing_subscriber::layer::{Layer, SubscriberExt as _};
    use tracing_subscriber::registry;

    use super::*;

    #[derive(Clone, Default)]
    struct Count(Arc<AtomicUsize>);

    impl<S: Subscriber> Layer<S> for Count {
        fn on_event(&self, _: &Event<'_>, _: Context<'_, S>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn count_lines(log: impl FnOnce()) -> usize {
        let count = Count::default();
        let subscriber = registry().with(count.clone().with_filter(RepeatFilter::default()));
        tracing::subscriber::with_default(subscriber, log);
        count.0.load(Ordering::Relaxed)
    }

    #[test]
    fn filter_beside_it_keeps_its_level() {
        let targets: Targets = "info".parse().unwrap();
        let both = FilterExt::<registry::Registry>::and(targets, RepeatFilter::default());
        assert_eq!(both.max_level_hint(), Some(LevelFilter::INFO));
    }

    #[test]
    fn repeated_failure_is_logged_once_per_object() {
        let lines = count_lines(|| {
            for number in 0..2_000 {
                warn!(lane = 1, batch.records = number, error.message = %number, "batch not written");
                for sku in ["a", "b"] {
                    warn!(sku, error.message = "no space left", "cannot claim stock");
                }
            }
        });
        assert_eq!(lines, 3);
    }

    #[test]
    fn refused_connections_are_logged_once() {
        let lines = count_lines(|| {
            for _ in 0..2_000 {
                warn!(
                    error.message = "Too many open files",
                    "connection has no deadline for responses"
                );
                error!(target: ACCEPT_TARGET, "Error accepting connection: {}", "Too many open files");
            }
        });
        assert_eq!(lines, 2);
    }

    #[test]
    fn different_errors_and_other_lines_are_all_logged() {
        let lines = count_lines(|| {
            for number in 0..10 {
                error!(error.message = %(number % 2), "database statement failed");
                warn!(vouchers = number, "low on stock");
            }
        });
        assert_eq!(lines, 2 + 10);
    }

    #[test]
    fn lasting_failure_is_logged_each_minute_and_a_later_one_at_once() {
        let filter = RepeatFilter::default();
        let start = Instant::now();
        let at = |seconds| filter.is_new(7, start + Duration::from_secs(seconds));
        assert!(at(0));
        let logged: Vec<u64> = (1..=180).filter(|second| at(*second)).collect();
        assert_eq!(logged, [60, 120, 180]);
        assert!(!at(194));
        assert!(at(209), "a new series");
    }

    #[test]
    fn memory_is_bounded_and_failures_beyond_it_are_logged() {
        let filter = RepeatFilter::default();
        let start = Instant::now();
        for key in 0..2 * MAX_SERIES as u64 {
            assert!(filter.is_new(key, start));
        }
        assert!(filter.is_new(u64::MAX, start) && filter.is_new(u64::MAX, start));
        assert!(!filter.is_new(0, start));
        assert_eq!(filter.series.lock().len(), MAX_SERIES);
        let later = start + SERIES_GAP;
        assert!(filter.is_new(u64::MAX, later) && !filter.is_new(u64::MAX, later));
    }
}
