//! A sign-in that the provider has not finished: what the browser keeps of it in a signed cookie.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::error::Unspecified;
use ring::rand::{SecureRandom as _, SystemRandom};
use vouchsafe_security::vault::cookie_key::CookieKey;

use crate::next_path::NextPath;

/// Seconds within which a person signs in at the provider.
pub const MAX_AGE_S: i64 = 600;

/// The secrets of a sign-in, which only its browser has. Has no `Debug`, so that they cannot be logged.
pub struct PendingSignIn {
    /// Comes back from the provider; differs for a callback of another sign-in.
    pub state: String,
    /// Comes back in the ID token.
    pub nonce: String,
    /// Proves to the provider that the code belongs to this sign-in (PKCE).
    pub verifier: String,
    pub next: NextPath,
    /// Unix time.
    pub begun_at_s: i64,
    pub purpose: SignInPurpose,
}

/// What a sign-in is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignInPurpose {
    Session,
    /// A session whose person the provider authenticates again.
    StepUp,
}

impl SignInPurpose {
    const fn label(self) -> &'static str {
        match self {
            Self::Session => "session",
            Self::StepUp => "step-up",
        }
    }
}

/// Random bytes of the state and of the nonce.
const TOKEN_BYTES: usize = 16;

/// Random bytes of the verifier: at least 32, so that it has 43 characters (RFC 7636 4.1).
const VERIFIER_BYTES: usize = 32;

impl PendingSignIn {
    /// A sign-in with new secrets.
    ///
    /// # Errors
    /// If the operating system provides no random bytes.
    pub(super) fn generate(
        next: NextPath,
        begun_at_s: i64,
        purpose: SignInPurpose,
    ) -> Result<Self, Unspecified> {
        Ok(Self {
            state: random_text::<TOKEN_BYTES>()?,
            nonce: random_text::<TOKEN_BYTES>()?,
            verifier: random_text::<VERIFIER_BYTES>()?,
            next,
            begun_at_s,
            purpose,
        })
    }

    /// The value of the cookie. Only a key of the vault can make one.
    #[must_use]
    pub fn to_cookie(&self, key: &CookieKey) -> String {
        let at = self.begun_at_s.to_string();
        let secrets = [&self.state, &self.nonce, &self.verifier].map(String::as_str);
        key.sign(
            &[&secrets[..], &[&at, self.purpose.label(), self.next.as_str()]]
                .concat()
                .join("\n"),
        )
    }

    /// The sign-in of a cookie to which a callback with `state` belongs, if it is younger than 10 minutes.
    #[must_use]
    pub fn of_callback(cookie: &str, key: &CookieKey, state: &str, now_s: i64) -> Option<Self> {
        let text = key.verify(cookie)?;
        let [of_sign_in, nonce, verifier, at, purpose, next] =
            text.split('\n').collect::<Vec<_>>().try_into().ok()?;
        let purposes = [SignInPurpose::Session, SignInPurpose::StepUp];
        let purpose = purposes.into_iter().find(|known| known.label() == purpose)?;
        let begun_at_s = at.parse().ok()?;
        let age_s = now_s.checked_sub(begun_at_s)?;
        let is_own = !state.is_empty() && of_sign_in == state && (0..MAX_AGE_S).contains(&age_s);
        is_own.then(|| Self {
            state: state.to_owned(),
            nonce: nonce.to_owned(),
            verifier: verifier.to_owned(),
            next: NextPath::parse_or_root(next),
            begun_at_s,
            purpose,
        })
    }
}

fn random_text<const BYTES: usize>() -> Result<String, Unspecified> {
    let mut bytes = [0; BYTES];
    SystemRandom::new().fill(&mut bytes)?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_of_a_sign_in_are_random_and_long_enough() {
        let generate =
            || PendingSignIn::generate(NextPath::parse_or_root("/"), 0, SignInPurpose::Session).unwrap();
        let (first, second) = (generate(), generate());
        assert_eq!(
            (first.state.len(), first.nonce.len(), first.verifier.len()),
            (22, 22, 43)
        );
        assert!(first.state != second.state && first.nonce != second.nonce);
        assert!(first.verifier != second.verifier && first.state != first.nonce);
    }

    #[test]
    fn callback_belongs_to_a_recent_sign_in_of_the_same_state_and_key() {
        let pending = PendingSignIn {
            state: "a&b=c; d".to_owned(),
            nonce: "n".to_owned(),
            verifier: "v".to_owned(),
            next: NextPath::parse_or_root("/orders?a=b"),
            begun_at_s: 1000,
            purpose: SignInPurpose::StepUp,
        };
        let [key, other_key] = [1, 2].map(|byte| CookieKey::from_bytes([byte; 32]));
        let cookie = pending.to_cookie(&key);
        let found = PendingSignIn::of_callback(&cookie, &key, "a&b=c; d", 1599).unwrap();
        assert_eq!((found.nonce.as_str(), found.verifier.as_str()), ("n", "v"));
        assert_eq!((found.next.as_str(), found.begun_at_s), ("/orders?a=b", 1000));
        assert_eq!(found.purpose, SignInPurpose::StepUp);
        let without_secrets = key.sign("\n\n\n1000\nsession\n");
        for (cookie, state, now_s) in [
            (cookie.as_str(), "a&b=c; d", 1600),
            (&cookie, "a&b=c; d", 999),
            (&cookie, "a", 1001),
            (&cookie, "", 1001),
            (&without_secrets, "", 1001),
            (&other_key.sign("s\nn\nv\n1000\nsession\n/"), "s", 1001),
            (&key.sign("s\nn\nv\n1000\nother\n/"), "s", 1001),
            // As a browser, or a page of the same host, could write it.
            ("state=s&nonce=n&verifier=v&next=%2F&at=1000", "s", 1001),
            ("", "", 1001),
        ] {
            assert!(
                PendingSignIn::of_callback(cookie, &key, state, now_s).is_none(),
                "{cookie} {state} {now_s}"
            );
        }
    }
}
