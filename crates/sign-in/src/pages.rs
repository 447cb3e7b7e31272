//! Pages of the sign-in, and the headers that they are sent with.

use maud::{DOCTYPE, Markup, html};
use vouchsafe_domain::operator::{OperatorName, Role};

use crate::next_path::NextPath;

/// Content security policy of the console.
pub const CONTENT_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; \
    form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// Style sheet of the pages, served at [`STYLE_PATH`].
pub const STYLE: &str = include_str!("style.css");

pub const STYLE_PATH: &str = "/sign-in/style.css";

fn page(title: &str, content: Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) " · Vouchsafe" }
                link rel="stylesheet" href=(STYLE_PATH);
            }
            body {
                main {
                    h1 { (title) }
                    (content)
                }
            }
        }
    }
}

/// The ways to sign in. `provider` is the host of the identity provider.
#[must_use]
pub fn sign_in(next: &NextPath, provider: Option<&str>) -> Markup {
    page(
        "Sign in",
        html! {
            @if let Some(provider) = provider {
                p { a class="button" href=(next.provider_url()) { "Sign in at " (provider) } }
            }
            h2 { "With a one-time link" }
            p { "Run this command with your operator token, and open the link that it prints, or paste it here. The link works once, \
                 for 10 minutes." }
            pre { code { "vouchsafe operator sign-in NAME" } }
            form method="post" action="/sign-in/link" {
                input type="hidden" name="next" value=(next);
                label for="token" { "Link" }
                input type="text" id="token" name="token" required autocomplete="off" spellcheck="false";
                button type="submit" { "Sign in" }
            }
        },
    )
}

/// The page of a valid link. Opening it signs nobody in: programs that preview links open them, too.
#[must_use]
pub fn confirm_link(operator: &OperatorName, token: &str) -> Markup {
    page(
        "Sign in",
        html! {
            form method="post" action="/sign-in/link" {
                input type="hidden" name="token" value=(token);
                button type="submit" { "Sign in as " (operator) }
            }
        },
    )
}

/// The account of the person who is signed in.
#[must_use]
pub fn account(operator: &OperatorName, role: Role) -> Markup {
    page(
        "Your account",
        html! {
            p { "You are signed in as " strong { (operator) } " with the role " strong { (role.into_str()) } "." }
            form method="post" action="/sign-out" {
                button type="submit" { "Sign out" }
            }
        },
    )
}

/// A sign-in that failed. `reason` is a sentence without its first capital and full stop, as in the errors of the API.
#[must_use]
pub fn failure(reason: &str) -> Markup {
    page(
        "Sign-in failed",
        html! {
            p role="alert" { (capitalize(reason)) "." }
            p { a href="/sign-in" { "Back to the sign-in" } }
        },
    )
}

fn capitalize(text: &str) -> String {
    let mut letters = text.chars();
    letters
        .next()
        .map(|first| first.to_uppercase().chain(letters).collect())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_from_outside_are_escaped() {
        let next = NextPath::parse_or_root("/a?b=\"><script>");
        let page = sign_in(&next, None).into_string();
        assert!(page.contains("value=\"/a?b=&quot;&gt;&lt;script&gt;\""), "{page}");
        let page = confirm_link(&OperatorName::built_in_admin(), "\"><script>").into_string();
        assert!(
            !page.contains("<script>") && page.contains("Sign in as admin"),
            "{page}"
        );
        let page = failure("the link is <b>").into_string();
        assert!(page.contains("The link is &lt;b&gt;."), "{page}");
    }
}
