//! Pages of the sign-in, in the layout of the console.

use maud::{Markup, html};
use vouchsafe_domain::operator::{OperatorName, Role};
use vouchsafe_ui::render_bare;

use crate::next_path::NextPath;

fn page(title: &str, content: Markup) -> Markup {
    let content = html! {
        div.sign-in {
            h1 { (title) }
            (content)
        }
    };
    render_bare(title, &content)
}

/// The ways to sign in. `provider` is the host of the identity provider.
#[must_use]
pub fn sign_in(next: &NextPath, provider: Option<&str>) -> Markup {
    page(
        "Sign in",
        html! {
            @if let Some(provider) = provider {
                p { a.button href=(next.provider_url()) { "Sign in at " (provider) } }
            }
            h2 { "With a one-time link" }
            p { "Run this command with your operator token, and open the link that it prints, or paste it \
                here. The link works once, for 10 minutes." }
            pre { code { "vouchsafe operator sign-in NAME" } }
            form method="post" action="/sign-in/link" {
                input type="hidden" name="next" value=(next);
                label for="token" { "Link" }
                input type="text" id="token" name="token" required autocomplete="off" spellcheck="false";
                button.primary type="submit" { "Sign in" }
            }
        },
    )
}

/// The page of a valid link. Opening it creates no session: programs that preview links open them, too.
#[must_use]
pub fn confirm_link(operator: &OperatorName, token: &str) -> Markup {
    page(
        "Sign in",
        html! {
            form method="post" action="/sign-in/link" {
                input type="hidden" name="token" value=(token);
                button.primary type="submit" { "Sign in as " (operator) }
            }
        },
    )
}

/// The page of a link that another site opened. Following it shows the operator, so that an operator does not
/// sign in as another one unknowingly.
#[must_use]
pub fn continue_with_link(token: &str) -> Markup {
    page(
        "Sign in",
        html! {
            p { "You opened a sign-in link from another page." }
            p { a.button href={ "/sign-in/link?token=" (token) } { "Continue" } }
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
                button.primary type="submit" { "Sign out" }
            }
            p { a href="/" { "Back to the console" } }
        },
    )
}

/// A sign-in that failed. `reason` is a sentence without its first capital and full stop, as in the errors of
/// the API.
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
        let page = continue_with_link("\"><script>").into_string();
        assert!(!page.contains("<script>"), "{page}");
        let page = failure("the link is <b>").into_string();
        assert!(page.contains("The link is &lt;b&gt;."), "{page}");
    }
}
