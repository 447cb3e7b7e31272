//! Times as operators type them: as tables print them, as an age, or as the API expects them.

use maud::{Markup, html};
use vouchsafe_domain::period::time_option::parse_time;
use vouchsafe_domain::timestamp;

/// Id of the list of ages that an input of a time suggests.
pub(crate) const SUGGESTIONS: &str = "ages";

/// The time as the API expects it. What does not parse stays: the API says what it expects.
pub(crate) fn api_time(text: &str) -> String {
    let at = parse_time(text.trim()).ok();
    at.and_then(|at| timestamp::format(at).ok())
        .unwrap_or_else(|| text.to_owned())
}

pub(crate) fn suggestions() -> Markup {
    html! {
        datalist id=(SUGGESTIONS) {
            @for (age, name) in [("1h", "an hour ago"), ("24h", "a day ago"), ("7d", "a week ago"), ("30d", "30 days ago")] {
                option value=(age) { (name) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printed_time_is_sent_in_utc_and_other_texts_stay() {
        assert_eq!(api_time("2026-11-25 10:00:00"), "2026-11-25T10:00:00.000000Z");
        assert_eq!(api_time(" 2026-11-25 "), "2026-11-25T00:00:00.000000Z");
        assert_ne!(api_time("1h"), "1h");
        assert_eq!(api_time("soon"), "soon");
    }
}
