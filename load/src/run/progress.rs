//! Progress counters of a run, and a progress bar on the terminal.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

/// Interval between redraws.
const REDRAW: Duration = Duration::from_millis(200);

/// Progress of a run; clones share the counters.
#[derive(Clone, Debug, Default)]
pub struct Progress(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    completed: AtomicU64,
    acknowledged: AtomicU64,
    measured_from: OnceLock<Instant>,
}

impl Progress {
    /// Counts a completed request.
    pub(crate) fn request_completed(&self) {
        self.0.completed.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts an acknowledged order.
    pub(crate) fn order_acknowledged(&self) {
        self.0.acknowledged.fetch_add(1, Ordering::Relaxed);
    }

    /// Sets the end of the warm-up.
    pub(crate) fn set_measurement_start(&self, from: Instant) {
        // A `Progress` belongs to one run; a second start is ignored.
        let _ = self.0.measured_from.set(from);
    }

    #[must_use]
    pub fn completed_requests(&self) -> u64 {
        self.0.completed.load(Ordering::Relaxed)
    }

    /// Acknowledged new orders.
    #[must_use]
    pub fn acknowledged_orders(&self) -> u64 {
        self.0.acknowledged.load(Ordering::Relaxed)
    }

    /// End of the warm-up; `None` before the run starts.
    #[must_use]
    pub fn measurement_start(&self) -> Option<Instant> {
        self.0.measured_from.get().copied()
    }
}

/// Progress bar; visible only on a terminal, until dropped.
pub struct RunProgressBar {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl RunProgressBar {
    /// Shows a run with an expected `length`.
    #[must_use]
    pub fn show(progress: &Progress, length: Duration) -> Self {
        let bar = ProgressBar::new(u64::try_from(length.as_millis()).unwrap_or(u64::MAX));
        if let Ok(style) = ProgressStyle::with_template("{elapsed:>4} [{bar:40}] {msg}") {
            bar.set_style(style);
        }
        let (stop, progress) = (Arc::new(AtomicBool::new(false)), progress.clone());
        let stop_flag = Arc::clone(&stop);
        let thread = std::thread::spawn(move || draw(&bar, &progress, &stop_flag));
        Self {
            stop,
            thread: Some(thread),
        }
    }
}

impl Drop for RunProgressBar {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // A failed progress bar does not fail the run.
            let _ = thread.join();
        }
    }
}

fn draw(bar: &ProgressBar, progress: &Progress, stop: &AtomicBool) {
    let (started, mut last_count, mut last_redraw) = (Instant::now(), 0, Instant::now());
    while !stop.load(Ordering::Relaxed) {
        std::thread::park_timeout(REDRAW);
        let (count, now) = (progress.completed_requests(), Instant::now());
        let rate = (count - last_count) as f64 / (now - last_redraw).as_secs_f64().max(f64::MIN_POSITIVE);
        (last_count, last_redraw) = (count, now);
        bar.set_position(u64::try_from((now - started).as_millis()).unwrap_or(u64::MAX));
        bar.set_message(format!("{count} requests, {rate:.0}/s"));
    }
    bar.finish_and_clear();
}
