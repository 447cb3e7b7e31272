//! Markdown to HTML: headings get anchors, links between files become links between pages, HTML stays text.

use std::collections::HashSet;

use maud::{Markup, PreEscaped};
use pulldown_cmark::{CowStr, Event, Options, Parser, Tag, TagEnd, html};

use super::layout::address;

/// The HTML of a text. Anchors are those that code hosts give the same headings, so that a link is right in both places.
pub(super) fn render(text: &str) -> Markup {
    let mut events: Vec<Event<'_>> = Parser::new_ext(text, Options::ENABLE_TABLES)
        .map(as_text)
        .map(as_page)
        .collect();
    name_headings(&mut events);
    let mut page = String::with_capacity(text.len() * 2);
    html::push_html(&mut page, events.into_iter());
    PreEscaped(page)
}

/// HTML in the text is shown, not obeyed.
fn as_text(event: Event<'_>) -> Event<'_> {
    match event {
        Event::Html(html) | Event::InlineHtml(html) => Event::Text(html),
        other => other,
    }
}

/// A link to a file leads to its page; one within the page, or to elsewhere, stays as it is.
fn as_page(event: Event<'_>) -> Event<'_> {
    match event {
        Event::Start(Tag::Link {
            link_type,
            dest_url,
            title,
            id,
        }) => Event::Start(Tag::Link {
            link_type,
            dest_url: led(dest_url),
            title,
            id,
        }),
        other => other,
    }
}

fn led(link: CowStr<'_>) -> CowStr<'_> {
    if link.starts_with('#') || link.contains(':') {
        return link;
    }
    match link.split_once('#') {
        Some((file, anchor)) => format!("{}#{anchor}", address(file)).into(),
        None => address(&link).into(),
    }
}

fn name_headings(events: &mut [Event<'_>]) {
    let mut taken = HashSet::new();
    for start in 0..events.len() {
        if !matches!(events[start], Event::Start(Tag::Heading { .. })) {
            continue;
        }
        let anchor = free(&mut taken, anchor_of(&text_of(&events[start + 1..])));
        if let Event::Start(Tag::Heading { id, .. }) = &mut events[start] {
            *id = Some(anchor.into());
        }
    }
}

/// The text of the heading that these events begin in.
fn text_of(events: &[Event<'_>]) -> String {
    let inside = events
        .iter()
        .take_while(|event| !matches!(event, Event::End(TagEnd::Heading(_))));
    inside
        .filter_map(|event| match event {
            Event::Text(text) | Event::Code(text) => Some(&**text),
            _ => None,
        })
        .collect()
}

/// Lower case, spaces to hyphens, letters, digits, `_` and `-` alone.
pub(super) fn anchor_of(heading: &str) -> String {
    let plain = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '_' | '-');
    heading
        .to_lowercase()
        .chars()
        .filter(plain)
        .map(|c| if c == ' ' { '-' } else { c })
        .collect()
}

/// The anchor, numbered if another heading of the page has it.
fn free(taken: &mut HashSet<String>, anchor: String) -> String {
    let numbered = (1..).map(|number| format!("{anchor}-{number}"));
    let mut names = std::iter::once(anchor.clone()).chain(numbered);
    let name = names.find(|name| !taken.contains(name)).unwrap_or(anchor);
    taken.insert(name.clone());
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markdown_becomes_html_and_html_stays_text() {
        for (text, expected) in [
            (
                "# A `B_c`, D!\n",
                "<h1 id=\"a-b_c-d\">A <code>B_c</code>, D!</h1>\n",
            ),
            ("# A\n\n# A\n", "<h1 id=\"a\">A</h1>\n<h1 id=\"a-1\">A</h1>\n"),
            (
                "[x](signing.md#rules)",
                "<p><a href=\"/docs/signing#rules\">x</a></p>\n",
            ),
            ("[x](README.md)", "<p><a href=\"/docs\">x</a></p>\n"),
            (
                "[x](signers/sign.py)",
                "<p><a href=\"/docs/signers/sign.py\">x</a></p>\n",
            ),
            ("[x](#here)", "<p><a href=\"#here\">x</a></p>\n"),
            ("a <b>b</b> & c", "<p>a &lt;b&gt;b&lt;/b&gt; &amp; c</p>\n"),
            (
                "<script>alert(1)</script>\n",
                "&lt;script&gt;alert(1)&lt;/script&gt;\n",
            ),
            ("`<b>`", "<p><code>&lt;b&gt;</code></p>\n"),
        ] {
            assert_eq!(render(text).into_string(), expected, "{text}");
        }
    }
}
