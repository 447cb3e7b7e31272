//! Log of refused requests (4xx): a line each, sampled per partner and error code.
//!
//! A client that repeats a wrong request cannot fill the disk, and the number of lines that it lost is
//! logged.

use std::collections::HashMap;
use std::time::Duration;

use parking_lot::Mutex;
use tracing::info;
use vouchsafe_domain::ids::PartnerId;
use vouchsafe_wire::error_code::Code;

/// Lines of a partner and code per [`WINDOW`].
const MAX_LINES: u64 = 10;

const WINDOW: Duration = Duration::from_secs(1);

/// The refusals that share a limit. Unauthenticated requests have no partner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RefusalKey {
    pub partner_id: Option<PartnerId>,
    pub code: Code,
}

/// The refusals with a key since `started_at`, in monotonic time.
#[derive(Debug, Default)]
struct Window {
    started_at: Duration,
    refusals: u64,
}

/// Counts refusals by key. Partners and codes bound the number of keys; a key lasts as long as its window.
#[derive(Debug, Default)]
pub struct RefusalLog(Mutex<HashMap<RefusalKey, Window>>);

impl RefusalLog {
    /// Logs a refusal in the span of its request, unless there are too many with its key.
    pub fn record(&self, key: RefusalKey, now: Duration) {
        if !self.admit(key, now) {
            return;
        }
        info!(
            partner.id = key.partner_id.map(tracing::field::display),
            error.code = key.code.as_str(),
            http.status = key.code.status(),
            "request refused"
        );
    }

    /// Logs the number of suppressed lines of windows that have ended. Called every second.
    pub fn log_suppressed(&self, now: Duration) {
        for (key, suppressed) in self.end_windows(now) {
            info!(
                partner.id = key.partner_id.map(tracing::field::display),
                error.code = key.code.as_str(),
                suppressed,
                "more requests refused"
            );
        }
    }

    fn admit(&self, key: RefusalKey, now: Duration) -> bool {
        let mut windows = self.0.lock();
        let window = windows.entry(key).or_insert_with(|| Window {
            started_at: now,
            refusals: 0,
        });
        window.refusals += 1;
        window.refusals <= MAX_LINES
    }

    fn end_windows(&self, now: Duration) -> Vec<(RefusalKey, u64)> {
        let mut windows = self.0.lock();
        let ended = windows.extract_if(|_, window| now >= window.started_at + WINDOW);
        ended
            .map(|(key, window)| (key, window.refusals.saturating_sub(MAX_LINES)))
            .filter(|(_, suppressed)| *suppressed > 0)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn key(code: Code) -> RefusalKey {
        RefusalKey {
            partner_id: None,
            code,
        }
    }

    #[test]
    fn refusals_above_the_limit_of_their_key_are_counted() {
        let log = RefusalLog::default();
        let at = Duration::from_millis;
        let [invalid, absent] = [Code::ValidationFailed, Code::OrderNotFound].map(key);
        let admitted = (0..25).filter(|n| log.admit(invalid, at(n * 20))).count();
        assert_eq!(admitted, 10);
        assert!(log.admit(absent, at(500)), "another code has a limit of its own");
        let partner_id = Some(PartnerId::generate());
        let of_partner = RefusalKey {
            partner_id,
            ..invalid
        };
        assert!(log.admit(of_partner, at(500)), "so has another partner");
        assert_eq!(log.end_windows(at(999)), [], "no window has ended");
        assert_eq!(log.end_windows(at(1_000)), [(invalid, 15)]);
        assert!(log.admit(invalid, at(1_000)));
        assert_eq!(log.end_windows(at(9_000)), []);
        assert!(log.0.lock().is_empty());
    }
}
