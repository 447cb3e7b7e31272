//! What needs a decision: counts of an object as links, the most severe first.

use maud::{Markup, html};

use crate::json::Json;

/// A count that needs a decision unless it is zero.
pub(crate) struct Decision {
    pub(crate) field: &'static str,
    /// Before the count.
    pub(crate) label: &'static str,
    /// The page of what is counted.
    pub(crate) page: &'static str,
    pub(crate) severity: Severity,
}

/// How soon an operator decides.
#[derive(Clone, Copy)]
pub(crate) enum Severity {
    /// Partners notice it.
    Urgent,
    /// It waits for an operator.
    Waiting,
}

impl Severity {
    /// The class of its colour, and what a screen reader says.
    const fn look(self) -> (&'static str, &'static str) {
        match self {
            Self::Urgent => ("bad", "urgent"),
            Self::Waiting => ("waiting", "waits"),
        }
    }
}

/// The counts that are not zero, as links.
pub(crate) fn render(decisions: &[Decision], object: &Json) -> Markup {
    let open = decisions.iter().filter_map(|decision| {
        let Json::Number(count) = object.get(decision.field) else {
            return None;
        };
        (count != "0").then_some((decision, count))
    });
    let open: Vec<_> = open.collect();
    html! {
        section.decisions {
            h2 { "Needs a decision" }
            @if open.is_empty() { p { "Nothing waits for an operator." } }
            @else {
                ul {
                    @for (decision, count) in open {
                        @let (colour, word) = decision.severity.look();
                        li { a class={ "state " (colour) } href=(decision.page) { (decision.label) " " b { (crate::number::format(decision.field, count)) } span.hidden { " (" (word) ")" } } }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_above_zero_are_links_by_severity() {
        let decisions = [
            Decision {
                field: "a",
                label: "Open circuits",
                page: "/vendors",
                severity: Severity::Urgent,
            },
            Decision {
                field: "b",
                label: "Payouts to pay",
                page: "/payouts",
                severity: Severity::Waiting,
            },
        ];
        let shown = |object: &str| render(&decisions, &Json::parse(object.as_bytes())).into_string();
        let both = shown(r#"{"a":1200,"b":1}"#);
        assert!(
            both.contains(r#"<a class="state bad" href="/vendors">Open circuits <b>1,200</b><"#),
            "{both}"
        );
        assert!(
            both.contains(r#"<a class="state waiting" href="/payouts">Payouts to pay <b>1</b><"#),
            "{both}"
        );
        assert!(!shown(r#"{"a":0,"b":2}"#).contains("Open circuits"));
        assert!(shown(r#"{"a":0,"b":0}"#).contains("Nothing waits"));
    }
}
