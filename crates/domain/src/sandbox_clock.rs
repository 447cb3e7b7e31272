//! Test clocks of partners in the sandbox: an advance ages everything that exists at its time, and nothing
//! that comes later.

use std::collections::HashMap;
use std::time::Duration;

use parking_lot::RwLock;
use serde::{Deserialize, Serialize};
use time::OffsetDateTime;

use crate::ids::PartnerId;

/// Longest advance, in seconds: a month is longer than every window.
pub const MAX_ADVANCE_S: u32 = 31 * 86_400;

/// Maximum number of advances of a clock. A further one adds the two oldest up.
const MAX_ADVANCES: usize = 100;

/// The advances of a partner's clock, oldest first.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ClockAdvances(Vec<ClockAdvance>);

/// An advance of a clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockAdvance {
    #[serde(with = "crate::timestamp")]
    pub at: OffsetDateTime,
    pub seconds: i64,
}

impl ClockAdvances {
    /// Advances the clock at the time `at`, which is the latest.
    pub fn advance(&mut self, at: OffsetDateTime, seconds: u32) {
        let seconds = seconds.into();
        self.0.push(ClockAdvance { at, seconds });
        while self.0.len() > MAX_ADVANCES {
            let oldest = self.0.remove(0);
            self.0[0].seconds += oldest.seconds;
        }
    }

    /// By how much what was created at this time is older than its age.
    #[must_use]
    pub fn since(&self, created_at: OffsetDateTime) -> Duration {
        let later = self.0.iter().filter(|advance| advance.at > created_at);
        sum(later)
    }

    /// The sum of all advances.
    #[must_use]
    pub fn total(&self) -> Duration {
        sum(self.0.iter())
    }

    /// Times and seconds for a sum in the database: none is longer than [`MAX_ADVANCE_S`], which ends every
    /// window, so that the sum fits an `integer`.
    #[must_use]
    pub fn bounded(&self) -> (Vec<OffsetDateTime>, Vec<i64>) {
        let bounded = |advance: &ClockAdvance| (advance.at, advance.seconds.min(MAX_ADVANCE_S.into()));
        self.0.iter().map(bounded).unzip()
    }

    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

fn sum<'a>(advances: impl Iterator<Item = &'a ClockAdvance>) -> Duration {
    let seconds: u64 = advances.map(|advance| advance.seconds.unsigned_abs()).sum();
    Duration::from_secs(seconds)
}

/// The clocks of all partners that have advanced theirs.
#[derive(Debug, Default)]
pub struct SandboxClocks(RwLock<HashMap<PartnerId, ClockAdvances>>);

impl SandboxClocks {
    /// The advances of a partner; none if it never advanced its clock.
    #[must_use]
    pub fn of(&self, partner_id: PartnerId) -> ClockAdvances {
        self.0.read().get(&partner_id).cloned().unwrap_or_default()
    }

    /// Takes over what was read, and returns whether it is news. A clock never goes back: an older read
    /// changes nothing.
    pub fn put(&self, partner_id: PartnerId, advances: ClockAdvances) -> bool {
        let mut clocks = self.0.write();
        let known = clocks.entry(partner_id).or_default();
        let is_news = advances.total() > known.total();
        if is_news {
            *known = advances;
        }
        is_news
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::NOW;

    #[test]
    fn advance_ages_what_existed_before_it() {
        let mut advances = ClockAdvances::default();
        assert_eq!(advances.since(NOW), Duration::ZERO);
        advances.advance(NOW + Duration::from_secs(10), 3_600);
        advances.advance(NOW + Duration::from_secs(20), 60);
        for (created_at, expected) in [(0, 3_660), (9, 3_660), (10, 60), (19, 60), (20, 0)] {
            let aged = advances.since(NOW + Duration::from_secs(created_at));
            assert_eq!(aged, Duration::from_secs(expected), "{created_at}");
        }
        assert_eq!(advances.total(), Duration::from_secs(3_660));
    }

    #[test]
    fn sum_for_the_database_fits_an_integer_after_any_number_of_advances() {
        let mut advances = ClockAdvances::default();
        for second in 0..2_000 {
            advances.advance(NOW + Duration::from_secs(second), MAX_ADVANCE_S);
        }
        assert!(advances.total() > Duration::from_secs(i32::MAX.unsigned_abs().into()));
        let (times, seconds) = advances.bounded();
        assert_eq!(times.len(), MAX_ADVANCES);
        assert!(seconds.iter().sum::<i64>() <= i32::MAX.into());
        assert_eq!(seconds[0], i64::from(MAX_ADVANCE_S));
    }

    #[test]
    fn many_advances_become_one_without_losing_time() {
        let mut advances = ClockAdvances::default();
        for second in 0..250 {
            advances.advance(NOW + Duration::from_secs(second), 1);
        }
        assert_eq!(advances.0.len(), MAX_ADVANCES);
        assert_eq!(advances.total(), Duration::from_secs(250));
        assert_eq!(
            advances.since(NOW + Duration::from_secs(240)),
            Duration::from_secs(9)
        );
    }
}
