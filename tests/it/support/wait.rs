//! Waiting for what must happen: asked again and again until it holds or its deadline has passed.

use std::time::{Duration, Instant};

/// How long to wait before asking again.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// For everything that must happen and has no promise of its own.
pub(crate) const WAIT_TIMEOUT: Duration = Duration::from_secs(30);

/// Waits on this thread until `ask` gives something.
pub(crate) fn wait_until<T>(what: &str, within: Duration, mut ask: impl FnMut() -> Option<T>) -> T {
    let begin = Instant::now();
    loop {
        if let Some(found) = ask() {
            return found;
        }
        assert!(begin.elapsed() < within, "not within {within:?}: {what}");
        std::thread::sleep(POLL_INTERVAL);
    }
}

/// Lets others work until `ask` gives something.
pub(crate) async fn eventually<T>(
    what: &str,
    within: Duration,
    mut ask: impl AsyncFnMut() -> Option<T>,
) -> T {
    let begin = Instant::now();
    loop {
        if let Some(found) = ask().await {
            return found;
        }
        assert!(begin.elapsed() < within, "not within {within:?}: {what}");
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}
