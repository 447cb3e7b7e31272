//! Polling until a condition holds or its timeout passes, and tasks that nothing waits for.

use std::future::Future;
use std::time::{Duration, Instant};

const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Only a hang takes this long, however busy the machine is.
pub const WAIT_TIMEOUT: Duration = Duration::from_mins(5);

/// Blocks the thread until `poll` returns a value.
pub fn wait_until<T>(description: &str, timeout: Duration, mut poll: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = poll() {
            return found;
        }
        assert!(start.elapsed() < timeout, "not within {timeout:?}: {description}");
        std::thread::sleep(POLL_INTERVAL);
    }
}

/// Waits asynchronously until `poll` returns a value.
pub async fn eventually<T>(
    description: &str,
    timeout: Duration,
    mut poll: impl AsyncFnMut() -> Option<T>,
) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = poll().await {
            return found;
        }
        assert!(start.elapsed() < timeout, "not within {timeout:?}: {description}");
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

/// Spawns a task that runs until the test's runtime ends.
#[allow(
    clippy::disallowed_methods,
    reason = "the runtime of a test ends with the test"
)]
pub fn spawn(work: impl Future<Output = ()> + Send + 'static) {
    drop(tokio::spawn(work));
}
