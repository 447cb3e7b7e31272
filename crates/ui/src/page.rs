//! Parts that all pages share.

use maud::{DOCTYPE, Markup, html};
use vouchsafe_domain::deceptive::is_deceptive;

use crate::assets;

/// Renders a page without navigation, for persons who are not signed in.
#[must_use]
pub fn render_bare(title: &str, content: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            (head(title))
            body.bare { main #content { (content) } }
        }
    }
}

/// Title, styles and script of a page.
#[must_use]
pub fn head(title: &str) -> Markup {
    html! {
        head {
            meta charset="utf-8";
            meta name="viewport" content="width=device-width, initial-scale=1";
            meta name="color-scheme" content="light dark";
            title { (visible(title)) " · Vouchsafe" }
            link rel="icon" href="/docs/favicon.svg" type="image/svg+xml";
            // Other sources are refused by the content security policy, as are styles in the page.
            meta name="htmx-config" content=r#"{"includeIndicatorStyles":false,"allowEval":false,"allowScriptTags":false,"selfRequestsOnly":true,"responseHandling":[{"code":".*","swap":true}]}"#;
            link rel="stylesheet" href=(assets::style_path());
            script defer src=(assets::script_path()) {}
        }
    }
}

/// The script of a page with charts, in its content. It runs before that of all pages, which is deferred.
#[must_use]
pub fn chart_script() -> Markup {
    html! { script src=(assets::chart_script_path()) {} }
}

/// A text in which control characters and marks of direction are visible: another party may have written it.
#[must_use]
pub fn visible(text: &str) -> Markup {
    html! {
        @for part in text.split_inclusive(is_deceptive) {
            @match part.chars().next_back().filter(|last| is_deceptive(*last)) {
                Some(last) => {
                    (part[..part.len() - last.len_utf8()])
                    span.escape { (last.escape_unicode().to_string()) }
                }
                None => (part),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deceptive_characters_are_visible_and_markup_is_text() {
        let shown = visible("a\u{202e}b\nc<b>\u{1b}").into_string();
        assert_eq!(
            shown,
            "a<span class=\"escape\">\\u{202e}</span>b<span class=\"escape\">\\u{a}</span>c&lt;b&gt;<span \
             class=\"escape\">\\u{1b}</span>"
        );
        assert_eq!(visible("naïve 日本").into_string(), "naïve 日本");
    }
}
