//! Range of a chart: a part of the last 30 days, in at most as many periods as a chart has room for.

use time::{Duration, OffsetDateTime};
use vouchsafe_domain::period::Period;

/// Periods of a response.
const MAX_PERIODS: i64 = 360;

/// How long the figures of charts are kept.
const LONGEST: Duration = Duration::days(30);

/// The range that a request means.
pub(super) struct ChartRange {
    pub(super) from: OffsetDateTime,
    pub(super) to: OffsetDateTime,
    /// Stored periods in a period of the response.
    pub(super) step: i32,
}

impl ChartRange {
    /// The requested range of figures that are stored for each `stored`; `default` without `from`.
    pub(super) fn new(period: Period, now: OffsetDateTime, stored: Duration, default: Duration) -> Self {
        let to = period.to.unwrap_or(now).min(now + stored);
        let from = period.from.unwrap_or(to - default).max(now - LONGEST);
        Self {
            from,
            to,
            step: step(to - from, stored),
        }
    }
}

fn step(range: Duration, stored: Duration) -> i32 {
    let periods = (range.whole_seconds() / stored.whole_seconds()).max(1);
    i32::try_from(periods.div_euclid(MAX_PERIODS) + i64::from(periods % MAX_PERIODS > 0)).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn range_has_at_most_as_many_periods_as_a_chart_has_room_for() {
        for (range, stored, expected) in [
            (Duration::ZERO, Duration::MINUTE, 1),
            (Duration::hours(6), Duration::MINUTE, 1),
            (Duration::minutes(361), Duration::MINUTE, 2),
            (Duration::days(1), Duration::MINUTE, 4),
            (Duration::days(30), Duration::MINUTE, 120),
            (Duration::days(-1), Duration::MINUTE, 1),
            (Duration::days(7), Duration::HOUR, 1),
            (Duration::days(30), Duration::HOUR, 2),
        ] {
            assert_eq!(step(range, stored), expected, "{range} of {stored}");
        }
    }
}
