//! Time span of our purchases that the vendor records of a day must contain.
//!
//! The vendor's clock and ours differ: a voucher sold at 23:59:59 may be recorded here at 00:00:01. The span
//! of a day therefore ends one hour before the day if the records of the next day are not known yet;
//! purchases of that hour are compared one day later, with the records of both days. Spans of adjacent days
//! meet, in whatever order they were compared, so that each voucher is due once.

use time::{Date, Duration, OffsetDateTime, Time};

/// Largest clock difference to a vendor, including the latency of a response.
pub const CLOCK_ALLOWANCE: Duration = Duration::HOUR;

/// Half-open: from inclusive, to exclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    pub from: OffsetDateTime,
    pub to: OffsetDateTime,
}

/// What is known about the days before and after.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AdjacentDays {
    /// End of the previous day's span, if its records are complete.
    pub previous_to: Option<OffsetDateTime>,
    /// Start of the next day's span, if its records are known.
    pub next_from: Option<OffsetDateTime>,
}

/// The start of a day in UTC.
#[must_use]
pub const fn midnight(day: Date) -> OffsetDateTime {
    day.with_time(Time::MIDNIGHT).assume_utc()
}

/// The span of a day whose records are known up to `known_to`.
#[must_use]
pub fn comparison_span(day: Date, adjacent: AdjacentDays, known_to: OffsetDateTime) -> Span {
    let end = midnight(day).saturating_add(Duration::DAY);
    let from = adjacent.previous_to.unwrap_or(midnight(day));
    let to = adjacent.next_from.unwrap_or(end - CLOCK_ALLOWANCE);
    // The records of an unfinished day contain the sales so far.
    let to = if known_to < end { to.min(known_to) } else { to };
    Span {
        from,
        to: to.max(from),
    }
}

#[cfg(test)]
mod tests {
    use time::macros::{date, datetime};

    use super::*;

    const DAY: Date = date!(2026 - 11 - 20);
    const LATER: OffsetDateTime = datetime!(2026-11-21 02:00 UTC);

    fn of(
        before_to: Option<OffsetDateTime>,
        after_from: Option<OffsetDateTime>,
        known_to: OffsetDateTime,
    ) -> Span {
        let adjacent = AdjacentDays {
            previous_to: before_to,
            next_from: after_from,
        };
        comparison_span(DAY, adjacent, known_to)
    }

    #[test]
    fn span_starts_at_the_previous_end_and_leaves_the_last_hour() {
        let (begin, end) = (datetime!(2026-11-20 00:00 UTC), datetime!(2026-11-20 23:00 UTC));
        for (before_to, after_from, known_to, expected) in [
            (None, None, LATER, (begin, end)),
            (
                Some(begin - CLOCK_ALLOWANCE),
                None,
                LATER,
                (begin - CLOCK_ALLOWANCE, end),
            ),
            (
                None,
                Some(datetime!(2026-11-21 00:00 UTC)),
                LATER,
                (begin, datetime!(2026-11-21 00:00 UTC)),
            ),
            (
                None,
                None,
                datetime!(2026-11-20 12:00 UTC),
                (begin, datetime!(2026-11-20 12:00 UTC)),
            ),
            (None, None, datetime!(2026-11-20 23:30 UTC), (begin, end)),
            (Some(begin), None, datetime!(2026-11-19 12:00 UTC), (begin, begin)),
        ] {
            let found = of(before_to, after_from, known_to);
            assert_eq!(
                (found.from, found.to),
                expected,
                "{before_to:?} {after_from:?} {known_to}"
            );
        }
    }

    #[test]
    fn spans_of_adjacent_days_meet_in_any_order() {
        let next = DAY.next_day().unwrap();
        let later = LATER + Duration::DAY;
        let first = comparison_span(DAY, AdjacentDays::default(), later);
        let second = comparison_span(
            next,
            AdjacentDays {
                previous_to: Some(first.to),
                next_from: None,
            },
            later,
        );
        assert_eq!(first.to, second.from);
        let second = comparison_span(next, AdjacentDays::default(), later);
        let first = comparison_span(
            DAY,
            AdjacentDays {
                previous_to: None,
                next_from: Some(second.from),
            },
            later,
        );
        assert_eq!(first.to, second.from);
    }
}
