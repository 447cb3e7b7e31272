//! How far is a run? A count that the generator raises, and a bar on the terminal of who waits for it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

/// Pause between two looks at the count.
const REDRAW: Duration = Duration::from_millis(200);

/// How far a run is. Copies count together.
#[derive(Clone, Debug, Default)]
pub struct Progress(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    ended: AtomicU64,
    orders: AtomicU64,
    measured_from: OnceLock<Instant>,
}

impl Progress {
    /// One request more has ended.
    pub(crate) fn request_completed(&self) {
        self.0.ended.fetch_add(1, Ordering::Relaxed);
    }

    /// One order more was acknowledged.
    pub(crate) fn order_acknowledged(&self) {
        self.0.orders.fetch_add(1, Ordering::Relaxed);
    }

    /// The run has begun, and is measured from this time on.
    pub(crate) fn set_measurement_start(&self, from: Instant) {
        // A progress is of one run; of a second one, nobody asks when it was measured.
        let _ = self.0.measured_from.set(from);
    }

    /// How many requests have ended.
    #[must_use]
    pub fn completed_requests(&self) -> u64 {
        self.0.ended.load(Ordering::Relaxed)
    }

    /// How many new orders were acknowledged.
    #[must_use]
    pub fn acknowledged_orders(&self) -> u64 {
        self.0.orders.load(Ordering::Relaxed)
    }

    /// When the warm-up is over; `None` before the run has begun.
    #[must_use]
    pub fn measurement_start(&self) -> Option<Instant> {
        self.0.measured_from.get().copied()
    }
}

/// A bar that is drawn while it lives, on a terminal alone.
pub struct RunProgressBar {
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl RunProgressBar {
    /// Draws a run that is to take so long.
    #[must_use]
    pub fn show(progress: &Progress, length: Duration) -> Self {
        let bar = ProgressBar::new(u64::try_from(length.as_millis()).unwrap_or(u64::MAX));
        if let Ok(style) = ProgressStyle::with_template("{elapsed:>4} [{bar:40}] {msg}") {
            bar.set_style(style);
        }
        let (ends, progress) = (Arc::new(AtomicBool::new(false)), progress.clone());
        let told = Arc::clone(&ends);
        let thread = std::thread::spawn(move || draw(&bar, &progress, &told));
        Self {
            ends,
            thread: Some(thread),
        }
    }
}

impl Drop for RunProgressBar {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // A bar that could not be drawn is no reason to stop.
            let _ = thread.join();
        }
    }
}

fn draw(bar: &ProgressBar, progress: &Progress, ends: &AtomicBool) {
    let (began, mut seen, mut looked) = (Instant::now(), 0, Instant::now());
    while !ends.load(Ordering::Relaxed) {
        std::thread::park_timeout(REDRAW);
        let (count, now) = (progress.completed_requests(), Instant::now());
        let rate = (count - seen) as f64 / (now - looked).as_secs_f64().max(f64::MIN_POSITIVE);
        (seen, looked) = (count, now);
        bar.set_position(u64::try_from((now - began).as_millis()).unwrap_or(u64::MAX));
        bar.set_message(format!("{count} requests, {rate:.0}/s"));
    }
    bar.finish_and_clear();
}
