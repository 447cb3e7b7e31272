//! Calendar months (UTC), the unit of archives.

use std::fmt::{self, Display, Formatter};
use std::str::FromStr;

use time::{Date, Duration};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Month {
    first: Date,
}

impl Month {
    #[must_use]
    pub fn of(day: Date) -> Self {
        let first = day.replace_day(1).unwrap_or(day);
        Self { first }
    }

    #[must_use]
    pub const fn first_day(self) -> Date {
        self.first
    }

    #[must_use]
    pub fn next(self) -> Self {
        // No month has more than 31 days.
        Self::of(self.first.saturating_add(Duration::days(31)))
    }

    #[must_use]
    pub fn previous(self) -> Self {
        Self::of(self.first.saturating_sub(Duration::DAY))
    }

    /// The month that is so many months earlier.
    #[must_use]
    pub fn minus(self, months: u16) -> Self {
        (0..months).fold(self, |month, _| month.previous())
    }
}

impl Display for Month {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}-{:02}", self.first.year(), u8::from(self.first.month()))
    }
}

/// A text that is no month, as `2026-08`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected a month such as 2026-08")]
pub struct InvalidMonth;

impl FromStr for Month {
    type Err = InvalidMonth;

    fn from_str(text: &str) -> Result<Self, InvalidMonth> {
        let format = time::macros::format_description!("[year]-[month]-[day]");
        let first = Date::parse(&format!("{text}-01"), format).map_err(|_| InvalidMonth)?;
        Ok(Self { first })
    }
}

#[cfg(test)]
mod tests {
    use time::macros::date;

    use super::*;

    #[test]
    fn months_follow_each_other_and_have_one_text() {
        let january = Month::of(date!(2027 - 01 - 31));
        assert_eq!(january.to_string(), "2027-01");
        assert_eq!("2027-01".parse(), Ok(january));
        assert_eq!(january.next().to_string(), "2027-02");
        assert_eq!(january.next().next().to_string(), "2027-03");
        assert_eq!(january.previous().to_string(), "2026-12");
        assert_eq!(january.minus(13).to_string(), "2025-12");
        for other in ["2027-13", "2027-1", "2027-01-01", ""] {
            assert_eq!(other.parse::<Month>(), Err(InvalidMonth), "{other}");
        }
    }
}
