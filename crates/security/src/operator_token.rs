//! Tokens of operators, for the API, a session, a sign-in link or an activation: generated text with a prefix
//! for secret scanners, stored as a hash.

use secrecy::SecretString;
use sha2::{Digest as _, Sha256};
use zeroize::Zeroizing;

use super::secret::{expose, hidden, secret_hash};

/// What a token is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenKind {
    /// Requests to the operator API.
    Api,
    /// The cookie of a session.
    Session,
    /// A one-time link that begins a session.
    SignInLink,
    /// A one-time code that activates a token of the API.
    Activation,
}

impl TokenKind {
    /// Lets secret scanners find leaked tokens.
    #[must_use]
    pub const fn prefix(self) -> &'static str {
        match self {
            Self::Api => "vso_",
            Self::Session => "vsn_",
            Self::SignInLink => "vsl_",
            Self::Activation => "vsa_",
        }
    }
}

const TOKEN_BYTES: usize = 32;

/// A new token: the prefix of its kind and 64 hex digits.
#[derive(Clone)]
pub struct OperatorToken(SecretString);

impl OperatorToken {
    /// Generates a token from the random bytes of `fill` (`getrandom::fill` in the service).
    ///
    /// # Errors
    /// The error of `fill`.
    pub fn generate<E>(kind: TokenKind, fill: impl FnOnce(&mut [u8]) -> Result<(), E>) -> Result<Self, E> {
        let mut random = Zeroizing::new([0; TOKEN_BYTES]);
        fill(&mut *random)?;
        let digits = Zeroizing::new(hex::encode(random.as_slice()));
        let text = Zeroizing::new([kind.prefix(), &digits].concat());
        Ok(Self(SecretString::from(text.as_str())))
    }

    /// Whether a presented text can be a token of this kind. Other texts need no lookup.
    #[must_use]
    pub fn is_well_formed(kind: TokenKind, text: &[u8]) -> bool {
        text.strip_prefix(kind.prefix().as_bytes())
            .is_some_and(|digits| digits.len() == 2 * TOKEN_BYTES && digits.iter().all(u8::is_ascii_hexdigit))
    }

    /// The text: for the one response that shows it, and for the file of a sandbox.
    #[must_use]
    pub fn expose(&self) -> &str {
        expose(&self.0)
    }

    /// The stored form.
    #[must_use]
    pub fn hash(&self) -> OperatorTokenHash {
        OperatorTokenHash::of(self.expose().as_bytes())
    }
}

hidden!(OperatorToken);

secret_hash! {
    /// SHA-256 of a token. A fast hash is sufficient: tokens are long and random.
    OperatorTokenHash
}

impl OperatorTokenHash {
    /// The hash of a presented token, of whatever form.
    #[must_use]
    pub fn of(token: &[u8]) -> Self {
        Self(Sha256::digest(token).into())
    }

    /// The hash that an operator has computed: 64 lower-case hex digits.
    #[must_use]
    pub fn from_hex(text: &str) -> Option<Self> {
        let is_lower = text.bytes().all(|byte| !byte.is_ascii_uppercase());
        let mut hash = [0; 32];
        hex::decode_to_slice(text, &mut hash).ok()?;
        is_lower.then_some(Self(hash))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_has_prefix_and_matches_only_itself() {
        let token = OperatorToken::generate(TokenKind::Api, |bytes| {
            bytes.fill(0xab);
            Ok::<_, ()>(())
        });
        let token = token.unwrap();
        let text = format!("vso_{}", "ab".repeat(32));
        assert_eq!(token.expose(), text);
        assert!(token.hash().matches(&OperatorTokenHash::of(text.as_bytes())));
        assert!(OperatorToken::is_well_formed(TokenKind::Api, text.as_bytes()));
        assert!(!OperatorToken::is_well_formed(
            TokenKind::Session,
            text.as_bytes()
        ));
        for malformed in [
            "",
            "vso_",
            &text[1..],
            &text[..text.len() - 1],
            &text.replace('a', "x"),
        ] {
            assert!(
                !OperatorToken::is_well_formed(TokenKind::Api, malformed.as_bytes()),
                "{malformed}"
            );
        }
        for wrong in ["", &text[..text.len() - 1], &text.to_uppercase(), "vso_"] {
            assert!(
                !token.hash().matches(&OperatorTokenHash::of(wrong.as_bytes())),
                "{wrong}"
            );
        }
        assert_eq!(
            format!("{token:?} {:?}", token.hash()),
            "OperatorToken(***) OperatorTokenHash(***)"
        );
    }
}
