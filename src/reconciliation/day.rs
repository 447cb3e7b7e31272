//! Which of our vouchers must a day's books have? Those that were bought in its span.
//!
//! A vendor's clock and ours are not the same, and a voucher that is sold at 23:59:59 may be ours at 00:00:01. So the span
//! of a day ends an hour before the day does, when the books of the day after are not yet known: what was bought in the
//! last hour is looked for a day later, in the books of both. Spans of neighbours that were compared meet, in whatever
//! order they were compared, so that each voucher is due once.

use time::{Date, Duration, OffsetDateTime, Time};

/// How far a vendor's clock and ours may be apart, with the time that an answer takes on its way.
pub const CLOCK_ALLOWANCE: Duration = Duration::HOUR;

/// From when on, and before when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    pub from: OffsetDateTime,
    pub to: OffsetDateTime,
}

/// What is known of the days beside it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AdjacentDays {
    /// Where the span of the day before ends, if the whole of its books is known.
    pub previous_to: Option<OffsetDateTime>,
    /// Where the span of the day after begins, if its books are known.
    pub next_from: Option<OffsetDateTime>,
}

/// The first moment of a day (UTC).
#[must_use]
pub const fn midnight(day: Date) -> OffsetDateTime {
    day.with_time(Time::MIDNIGHT).assume_utc()
}

/// The span of a day whose books are known up to a moment.
#[must_use]
pub fn comparison_span(day: Date, neighbours: AdjacentDays, known_to: OffsetDateTime) -> Span {
    let end = midnight(day).saturating_add(Duration::DAY);
    let from = neighbours.previous_to.unwrap_or(midnight(day));
    let to = neighbours.next_from.unwrap_or(end - CLOCK_ALLOWANCE);
    // A day that is not over has what was sold so far.
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
        let neighbours = AdjacentDays {
            previous_to: before_to,
            next_from: after_from,
        };
        comparison_span(DAY, neighbours, known_to)
    }

    #[test]
    fn a_span_begins_where_the_day_before_ended_and_leaves_the_last_hour_to_the_next() {
        let (begin, end) = (datetime!(2026-11-20 00:00 UTC), datetime!(2026-11-20 23:00 UTC));
        for (before_to, after_from, known_to, expected) in [
            (None, None, LATER, (begin, end)),
            (Some(begin - CLOCK_ALLOWANCE), None, LATER, (begin - CLOCK_ALLOWANCE, end)),
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
    fn neighbours_meet_in_whatever_order_they_are_compared() {
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
