//! Sections of a rendered page: its headings with the text below them, for "On this page" and the search
//! index.

use serde_json::{Value, json};

use super::keywords::KEYWORDS;
use super::page::Page;

/// Elements within a line of text; all others separate words.
const INLINE: [&str; 6] = ["a", "code", "em", "span", "strong", "b"];

/// A heading with an id, and the text up to the next one.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Section {
    pub(super) level: u8,
    pub(super) id: String,
    pub(super) title: String,
    pub(super) text: String,
}

/// The sections of our own HTML: attribute values are quoted, and `<` and `>` are escaped everywhere else.
pub(super) fn sections(html: &str) -> Vec<Section> {
    let mut sections = vec![Section::default()];
    let mut in_heading = false;
    for piece in html.split('<').skip(1) {
        let Some((tag, text)) = piece.split_once('>') else {
            continue;
        };
        let name = tag.split(' ').next().unwrap_or_default();
        if let Some(level) = name.strip_prefix('h').and_then(|level| level.parse().ok()) {
            let id = tag
                .split_once(" id=\"")
                .and_then(|(_, rest)| rest.split('"').next());
            in_heading = id.is_some();
            sections.extend(id.map(|id| Section {
                level,
                id: id.to_owned(),
                ..Section::default()
            }));
        } else if name.starts_with("/h") {
            in_heading = false;
        }
        if let Some(section) = sections.last_mut() {
            let target = if in_heading {
                &mut section.title
            } else {
                &mut section.text
            };
            if !INLINE.contains(&name.trim_start_matches('/')) {
                target.push(' ');
            }
            target.push_str(&unescape(text));
        }
    }
    for section in &mut sections {
        for text in [&mut section.title, &mut section.text] {
            *text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        }
    }
    sections.retain(|section| !section.id.is_empty());
    sections
}

/// The entries of a page in the search index: address, page, heading, text, keywords.
pub(super) fn search_entries(path: &str, page: &Page) -> Vec<Value> {
    let entry = |section: &Section| {
        if section.level == 1 {
            let text = format!("{} {}", page.keywords, section.text);
            return json!([path, page.name, "", text.trim(), keywords(path)]);
        }
        let address = format!("{path}#{}", section.id);
        json!([
            address,
            page.name,
            section.title,
            section.text,
            keywords(&address)
        ])
    };
    sections(&page.content.0).iter().map(entry).collect()
}

fn keywords(address: &str) -> &'static str {
    let found = KEYWORDS.iter().find(|(of, _)| *of == address);
    found.map_or("", |(_, words)| words)
}

fn unescape(text: &str) -> String {
    text.replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&quot;", "\"")
        .replace("&amp;", "&")
}

#[cfg(test)]
mod tests {
    use maud::PreEscaped;

    use super::*;

    #[test]
    fn sections_have_heading_and_text() {
        let html = "<h1 id=\"a\">A <code>B</code></h1>\n<p>One<b>1</b></p><p>two &amp;lt; &lt;</p><h2 id=\"c\">C</h2><p>x</p>";
        let section = |level, id: &str, title: &str, text: &str| Section {
            level,
            id: id.to_owned(),
            title: title.to_owned(),
            text: text.to_owned(),
        };
        let expected = [
            section(1, "a", "A B", "One1 two &lt; <"),
            section(2, "c", "C", "x"),
        ];
        assert_eq!(sections(html), expected);
        let page = Page {
            name: "Page".to_owned(),
            keywords: "GET /p".to_owned(),
            content: PreEscaped(html.to_owned()),
            ..Page::default()
        };
        let entries = search_entries("/docs/p", &page);
        assert_eq!(
            entries[0],
            json!(["/docs/p", "Page", "", "GET /p One1 two &lt; <", ""])
        );
        assert_eq!(entries[1], json!(["/docs/p#c", "Page", "C", "x", ""]));
        assert_eq!(sections("plain"), []);
    }
}
