//! Parser of ISO 8601 calendar dates (`YYYY-MM-DD`).

use time::Date;

/// Parses `YYYY-MM-DD` strictly. The length check rejects a sign before the year.
#[must_use]
pub fn parse_date(text: &str) -> Option<Date> {
    let format = time::macros::format_description!("[year]-[month]-[day]");
    (text.len() == 10)
        .then(|| Date::parse(text, &format).ok())
        .flatten()
}
