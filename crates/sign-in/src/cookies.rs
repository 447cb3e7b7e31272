//! Cookies of the console: names and attributes by the scheme of its URL.
//!
//! | Console | Name | Attributes |
//! |---|---|---|
//! | `https://…` | `__Host-NAME` | `Secure`, `HttpOnly`, `SameSite=Lax`, `Path=/` |
//! | `http://` on loopback | `NAME` | the same without `Secure` |
//!
//! `SameSite=Lax`, because a browser arrives at the console from the page of an identity provider.

use cookie::time::Duration;
use cookie::{Cookie, SameSite};
use vouchsafe_domain::operator_session::SESSION_HOURS;
use vouchsafe_security::console_url::ConsoleUrl;

use crate::oidc::MAX_AGE_S;

/// Hours for which browsers keep the token of a session after its end: it opens nothing any more, but only a
/// form with such a token is kept for its sender.
const KEPT_HOURS: i32 = 12;

/// A cookie of the console.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConsoleCookie {
    /// The token of a session.
    Session,
    /// A sign-in that the identity provider has not finished.
    PendingSignIn,
}

impl ConsoleCookie {
    /// The value in the `Cookie` headers of a request; the first one if it occurs several times.
    pub fn find<'a>(
        self,
        console: &ConsoleUrl,
        headers: impl IntoIterator<Item = &'a str>,
    ) -> Option<&'a str> {
        let name = self.name(console);
        headers
            .into_iter()
            .flat_map(Cookie::split_parse)
            .filter_map(Result::ok)
            .find(|cookie| cookie.name() == name)
            .and_then(|cookie| cookie.value_raw())
    }

    /// The `Set-Cookie` header that stores a value.
    #[must_use]
    pub fn set(self, console: &ConsoleUrl, value: &str) -> String {
        self.header(console, value, self.max_age())
    }

    /// The `Set-Cookie` header that removes the cookie.
    #[must_use]
    pub fn remove(self, console: &ConsoleUrl) -> String {
        self.header(console, "", Duration::ZERO)
    }

    fn header(self, console: &ConsoleUrl, value: &str, max_age: Duration) -> String {
        Cookie::build((self.name(console), value))
            .path("/")
            .http_only(true)
            .same_site(SameSite::Lax)
            .secure(console.is_https())
            .max_age(max_age)
            .build()
            .to_string()
    }

    const fn name(self, console: &ConsoleUrl) -> &'static str {
        match (self, console.is_https()) {
            (Self::Session, true) => "__Host-vouchsafe_session",
            (Self::Session, false) => "vouchsafe_session",
            (Self::PendingSignIn, true) => "__Host-vouchsafe_sign_in",
            (Self::PendingSignIn, false) => "vouchsafe_sign_in",
        }
    }

    const fn max_age(self) -> Duration {
        match self {
            Self::Session => Duration::hours(1).saturating_mul(SESSION_HOURS + KEPT_HOURS),
            Self::PendingSignIn => Duration::seconds(MAX_AGE_S),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn session_cookie_is_secure_and_bound_to_the_host_under_tls() {
        let tls: ConsoleUrl = "https://console.example.com".parse().unwrap();
        let plain: ConsoleUrl = "http://127.0.0.1:8081".parse().unwrap();
        assert_eq!(
            ConsoleCookie::Session.set(&tls, "vsn_1"),
            "__Host-vouchsafe_session=vsn_1; HttpOnly; SameSite=Lax; Secure; Path=/; Max-Age=86400"
        );
        assert_eq!(
            ConsoleCookie::Session.set(&plain, "vsn_1"),
            "vouchsafe_session=vsn_1; HttpOnly; SameSite=Lax; Path=/; Max-Age=86400"
        );
        assert_eq!(
            ConsoleCookie::Session.remove(&plain),
            "vouchsafe_session=; HttpOnly; SameSite=Lax; Path=/; Max-Age=0"
        );
    }

    #[test]
    fn cookie_is_found_by_its_exact_name() {
        let tls: ConsoleUrl = "https://console.example.com".parse().unwrap();
        let plain: ConsoleUrl = "http://127.0.0.1:8081".parse().unwrap();
        let find =
            |console, headers: &[&'static str]| ConsoleCookie::Session.find(console, headers.iter().copied());
        assert_eq!(find(&plain, &["a=b; vouchsafe_session=x; c=d"]), Some("x"));
        assert_eq!(find(&plain, &["a=b", "vouchsafe_session=x"]), Some("x"));
        assert_eq!(
            find(&plain, &["vouchsafe_session=x; vouchsafe_session=y"]),
            Some("x")
        );
        assert_eq!(find(&tls, &["__Host-vouchsafe_session=x"]), Some("x"));
        // A page of the same host without TLS could have set it.
        assert_eq!(find(&tls, &["vouchsafe_session=x"]), None);
        assert_eq!(find(&plain, &["", "=", "vouchsafe_session"]), None);
    }
}
