//! How is a day written? As `YYYY-MM-DD`, and in no other way.

use time::Date;

/// The day that a text says.
pub(crate) fn parse(text: &str) -> Option<Date> {
    let format = time::macros::format_description!("[year]-[month]-[day]");
    (text.len() == 10)
        .then(|| Date::parse(text, &format).ok())
        .flatten()
}
