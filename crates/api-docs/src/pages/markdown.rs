//! Markdown to HTML renderer: adds heading anchors, rewrites links between files to pages, links endpoints,
//! highlights code, escapes HTML.

use std::collections::{HashMap, HashSet};

use maud::{Markup, PreEscaped, html};
use pulldown_cmark::{CodeBlockKind, CowStr, Event, HeadingLevel, Options, Parser, Tag, TagEnd};

use super::code::{self, Tab};
use super::layout::{heading, href};

/// URL paths of the pages that code such as `GET /orders` leads to.
pub(super) type CodeLinks = HashMap<String, String>;

/// Renders Markdown. `page_of` is the page of a file that a link leads to. Heading anchors follow GitHub's
/// scheme, so that links work in the repository too.
pub(super) fn render(text: &str, links: &CodeLinks, page_of: &dyn Fn(&str) -> Option<String>) -> Markup {
    let events = Parser::new_ext(text, Options::ENABLE_TABLES).map(html_as_text);
    let mut events = rewrite_links(events, page_of);
    name_headings(&mut events);
    let events = link_code(events, links);
    let mut page = String::with_capacity(text.len() * 2);
    pulldown_cmark::html::push_html(&mut page, render_blocks(&events).into_iter());
    PreEscaped(page)
}

/// Links code to its page, outside of links and headings.
fn link_code<'a>(events: Vec<Event<'a>>, links: &CodeLinks) -> Vec<Event<'a>> {
    let mut is_linkable = true;
    let linked = events.into_iter().map(|event| {
        match &event {
            Event::Start(Tag::Link { .. } | Tag::Heading { .. }) => is_linkable = false,
            Event::End(TagEnd::Link | TagEnd::Heading(_)) => is_linkable = true,
            Event::Code(code) if is_linkable => {
                if let Some(target) = links.get(&**code) {
                    return Event::InlineHtml(
                        html! { a href=(target) { code { (code) } } }.into_string().into(),
                    );
                }
            }
            _ => {}
        }
        event
    });
    linked.collect()
}

/// Renders code blocks, and lets wide tables scroll. Consecutive files, each a link with its code, become
/// tabs.
fn render_blocks<'a>(events: &[Event<'a>]) -> Vec<Event<'a>> {
    let mut rendered = Vec::with_capacity(events.len());
    let mut at = 0;
    while let Some(event) = events.get(at) {
        let mut tabs = Vec::new();
        let mut end = at;
        while let Some((tab, length)) = file_with_code(&events[end..]) {
            tabs.push(tab);
            end += length;
        }
        if tabs.len() > 1 {
            let group = format!("code-{at}");
            rendered.push(Event::Html(code::tabs(&group, &tabs).into_string().into()));
            at = end;
        } else if let Some((language, text, length)) = code_block(&events[at..]) {
            let block = code::block(language, &Markup::default(), &text);
            rendered.push(Event::Html(block.into_string().into()));
            at += length;
        } else if let Some((heading, length)) = linked_heading(&events[at..]) {
            rendered.push(Event::Html(heading.into()));
            at += length;
        } else {
            let is_table = matches!(event, Event::Start(Tag::Table(_)));
            rendered
                .extend(is_table.then_some(Event::Html("<section class=\"scroll\" tabindex=\"0\">".into())));
            rendered.push(event.clone());
            let is_table_end = matches!(event, Event::End(TagEnd::Table));
            rendered.extend(is_table_end.then_some(Event::Html("</section>\n".into())));
            at += 1;
        }
    }
    rendered
}

/// The section heading at the start of these events, with a link to itself, and the number of its events.
fn linked_heading(events: &[Event<'_>]) -> Option<(String, usize)> {
    let Some(Event::Start(Tag::Heading {
        level, id: Some(id), ..
    })) = events.first()
    else {
        return None;
    };
    let end = events
        .iter()
        .position(|event| matches!(event, Event::End(TagEnd::Heading(_))))?;
    let inner = &events[1..end];
    let has_link = inner
        .iter()
        .any(|event| matches!(event, Event::Start(Tag::Link { .. })));
    if *level == HeadingLevel::H1 || has_link {
        return None;
    }
    let mut title = String::new();
    pulldown_cmark::html::push_html(&mut title, inner.iter().cloned());
    Some((
        heading(*level as u8, id, &PreEscaped(title)).into_string() + "\n",
        end + 1,
    ))
}

/// The code block at the start of these events: language, code and number of events.
fn code_block<'e>(events: &'e [Event<'_>]) -> Option<(&'e str, String, usize)> {
    let Some(Event::Start(Tag::CodeBlock(kind))) = events.first() else {
        return None;
    };
    let language = match kind {
        CodeBlockKind::Fenced(language) => language,
        CodeBlockKind::Indented => "",
    };
    let end = events
        .iter()
        .position(|event| matches!(event, Event::End(TagEnd::CodeBlock)))?;
    Some((language, text_of(&events[1..end]), end + 1))
}

/// A paragraph that only links to a file, and the code block after it.
fn file_with_code(events: &[Event<'_>]) -> Option<(Tab, usize)> {
    let [
        Event::Start(Tag::Paragraph),
        Event::Start(Tag::Link { dest_url, .. }),
        Event::Text(file),
        Event::End(TagEnd::Link),
        Event::End(TagEnd::Paragraph),
        code @ ..,
    ] = events
    else {
        return None;
    };
    let (language, text, length) = code_block(code)?;
    let tab = Tab {
        language: language.to_owned(),
        caption: html! { a href=(dest_url) { (file) } },
        code: text,
    };
    (href(file) == **dest_url).then_some((tab, 5 + length))
}

/// Turns raw HTML into escaped text.
fn html_as_text(event: Event<'_>) -> Event<'_> {
    match event {
        Event::Html(html) | Event::InlineHtml(html) => Event::Text(html),
        other => other,
    }
}

/// Rewrites links to files; links within the page, to absolute paths and to other hosts stay unchanged.
/// Leads the links to the pages of the site. The text of a link to a file that it does not have stays.
fn rewrite_links<'a>(
    events: impl Iterator<Item = Event<'a>>,
    page_of: &dyn Fn(&str) -> Option<String>,
) -> Vec<Event<'a>> {
    let mut is_dropped = false;
    let mut rewritten = Vec::new();
    for event in events {
        match event {
            Event::Start(Tag::Link {
                link_type,
                dest_url,
                title,
                id,
            }) => {
                let target = page_link(dest_url, page_of);
                is_dropped = target.is_none();
                rewritten.extend(target.map(|dest_url| {
                    Event::Start(Tag::Link {
                        link_type,
                        dest_url,
                        title,
                        id,
                    })
                }));
            }
            Event::End(TagEnd::Link) if is_dropped => is_dropped = false,
            other => rewritten.push(other),
        }
    }
    rewritten
}

fn page_link<'a>(link: CowStr<'a>, page_of: &dyn Fn(&str) -> Option<String>) -> Option<CowStr<'a>> {
    if link.starts_with(['#', '/']) || link.contains(':') {
        return Some(link);
    }
    match link.split_once('#') {
        Some((file, anchor)) => Some(format!("{}#{anchor}", page_of(file)?).into()),
        None => Some(page_of(&link)?.into()),
    }
}

fn name_headings(events: &mut [Event<'_>]) {
    let mut used = HashSet::new();
    for start in 0..events.len() {
        if !matches!(events[start], Event::Start(Tag::Heading { .. })) {
            continue;
        }
        let anchor = unique_anchor(&mut used, anchor_of(&text_of(&events[start + 1..])));
        if let Event::Start(Tag::Heading { id, .. }) = &mut events[start] {
            *id = Some(anchor.into());
        }
    }
}

/// The text of the heading at the start of these events.
fn text_of(events: &[Event<'_>]) -> String {
    let heading = events
        .iter()
        .take_while(|event| !matches!(event, Event::End(TagEnd::Heading(_))));
    heading
        .filter_map(|event| match event {
            Event::Text(text) | Event::Code(text) => Some(&**text),
            _ => None,
        })
        .collect()
}

/// The anchor of a heading: lower case, hyphens for spaces, only letters, digits, `_` and `-`.
pub(super) fn anchor_of(heading: &str) -> String {
    let is_plain = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '_' | '-');
    heading
        .to_lowercase()
        .chars()
        .filter(is_plain)
        .map(|c| if c == ' ' { '-' } else { c })
        .collect()
}

/// The anchor, with a number if another heading of the page has it already.
fn unique_anchor(used: &mut HashSet<String>, anchor: String) -> String {
    let numbered = (1..).map(|number| format!("{anchor}-{number}"));
    let mut names = std::iter::once(anchor.clone()).chain(numbered);
    let name = names.find(|name| !used.contains(name)).unwrap_or(anchor);
    used.insert(name.clone());
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of a guide of partners.
    fn html_of(text: &str, links: &CodeLinks) -> String {
        render(text, links, &|file| Some(href(file))).into_string()
    }

    #[test]
    fn markdown_is_rendered_and_html_escaped() {
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
            (
                "## A `b`\n",
                "<h2 id=\"a-b\"><a href=\"#a-b\">A <code>b</code></a></h2>\n",
            ),
            (
                "## [x](README.md)\n",
                "<h2 id=\"x\"><a href=\"/docs\">x</a></h2>\n",
            ),
            ("[x](#here)", "<p><a href=\"#here\">x</a></p>\n"),
            ("[x](/schemas/)", "<p><a href=\"/schemas/\">x</a></p>\n"),
            ("a <b>b</b> & c", "<p>a &lt;b&gt;b&lt;/b&gt; &amp; c</p>\n"),
            (
                "<script>alert(1)</script>\n",
                "&lt;script&gt;alert(1)&lt;/script&gt;\n",
            ),
            ("`<b>`", "<p><code>&lt;b&gt;</code></p>\n"),
            (
                "```json\n<1>\n```\n",
                "<figure class=\"code\"><figcaption><span>JSON</span></figcaption><pre \
                 tabindex=\"0\"><code>&lt;<span class=\"n\">1</span>&gt;\n</code></pre></figure>",
            ),
        ] {
            assert_eq!(html_of(text, &CodeLinks::new()), expected, "{text}");
        }
    }

    #[test]
    fn consecutive_files_become_tabs() {
        let file = |name: &str, language: &str| format!("[{name}]({name})\n\n```{language}\nx\n```\n\n");
        let one = html_of(&file("a.sh", "sh"), &CodeLinks::new());
        assert!(
            !one.contains("<fieldset>") && one.contains("<p><a href=\"/docs/a.sh\">a.sh</a></p>"),
            "{one}"
        );
        let two = html_of(&(file("a.sh", "sh") + &file("a.py", "python")), &CodeLinks::new());
        assert_eq!(two.matches("type=\"radio\"").count(), 2, "{two}");
        assert!(
            two.contains(
                "data-language=\"python\"><figure class=\"code\"><figcaption><a href=\"/docs/a.py\">"
            ),
            "{two}"
        );
    }

    #[test]
    fn tables_scroll_and_take_the_focus() {
        let page = html_of("| a |\n|---|\n| b |\n", &CodeLinks::new());
        assert!(
            page.starts_with("<section class=\"scroll\" tabindex=\"0\"><table>"),
            "{page}"
        );
        assert!(page.trim_end().ends_with("</table>\n</section>"), "{page}");
    }

    #[test]
    fn code_is_linked_outside_of_links_and_headings() {
        let links = CodeLinks::from([("GET /a".to_owned(), "/docs/a".to_owned())]);
        let page = html_of("`GET /a`, [`GET /a`](#x), `GET /b`\n\n# `GET /a`\n", &links);
        let expected = "<p><a href=\"/docs/a\"><code>GET /a</code></a>, <a href=\"#x\"><code>GET \
            /a</code></a>, <code>GET /b</code></p>\n<h1 id=\"get-a\"><code>GET /a</code></h1>\n";
        assert_eq!(page, expected);
    }
}
