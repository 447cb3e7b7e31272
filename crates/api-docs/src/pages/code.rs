//! Code blocks and language tabs.
//!
//! Tabs are radio buttons, so they work without the script; it only remembers the chosen language. Browsers
//! without `:has()` show all languages, one below the other.

use maud::{Markup, html};

use super::highlight::highlight;

/// A code block in a tab.
pub(super) struct Tab {
    /// Language of the fence, such as `sh`.
    pub(super) language: String,
    /// Link to the file that the code shows, or nothing.
    pub(super) caption: Markup,
    pub(super) code: String,
}

/// Renders a code block below its caption, by default the language. It can scroll, so the keyboard must reach
/// it.
pub(super) fn block(language: &str, caption: &Markup, code: &str) -> Markup {
    html! {
        figure.code {
            figcaption { @if caption.0.is_empty() { span { (label(language)) } } @else { (caption) } }
            pre tabindex="0" { code { (highlight(language, code)) } }
        }
    }
}

/// Renders code in several languages; `group` is unique on its page.
pub(super) fn tabs(group: &str, tabs: &[Tab]) -> Markup {
    html! {
        div.tabs {
            fieldset {
                legend { "Language" }
                @for (index, tab) in tabs.iter().enumerate() {
                    @let id = format!("{group}-{}", tab.language);
                    input type="radio" name=(group) id=(id) value=(tab.language) checked[index == 0];
                    label for=(id) { (label(&tab.language)) }
                }
            }
            @for tab in tabs {
                div.tab data-language=(tab.language) { (block(&tab.language, &tab.caption, &tab.code)) }
            }
        }
    }
}

fn label(language: &str) -> &str {
    match language {
        "sh" => "Shell",
        "python" => "Python",
        "js" => "Node.js",
        "java" => "Java",
        "php" => "PHP",
        "go" => "Go",
        "csharp" => "C#",
        "rust" => "Rust",
        "lua" => "Lua",
        "json" => "JSON",
        "http" => "HTTP",
        "" | "text" => "Text",
        other => other,
    }
}
