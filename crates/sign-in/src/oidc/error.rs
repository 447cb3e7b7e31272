//! Errors of a sign-in at an OpenID provider. Their texts are for the log: they contain no code, no token and
//! no nonce.

use std::error::Error;

use jsonwebtoken::Algorithm;
use vouchsafe_domain::error_chain::describe_chain;

/// Why a sign-in failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OidcError {
    /// The provider did not answer, or not as a provider does.
    #[error("the identity provider is not available: {0}")]
    Unavailable(String),
    /// The provider refused the code, or its ID token is not valid for this sign-in.
    #[error("the identity provider refused the sign-in: {0}")]
    Refused(String),
    /// The sign-in is a step-up, and the ID token has no recent `auth_time`, or none of the classes of the
    /// settings as `acr`.
    #[error("the ID token of a step-up has no recent auth_time, or not the acr that is required")]
    NotRecent,
}

/// Why a signed token of the provider is not valid for this service or this sign-in.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum InvalidToken {
    #[error("the token is no signed JWT with three parts in base64url")]
    Malformed,
    #[error("the header of the token is not valid, or its algorithm is unknown")]
    Header,
    #[error("the header field {0} of the token is not supported")]
    HeaderField(&'static str),
    #[error("the algorithm {0:?} of the token is symmetric or not supported")]
    Algorithm(Algorithm),
    #[error("no key of the provider fits the algorithm and the key ID of the token")]
    NoKey,
    #[error("{0} keys of the provider fit the algorithm and the key ID of the token; expected one")]
    AmbiguousKey(usize),
    #[error("the key of the provider is not valid")]
    Key,
    #[error("the RSA key of the provider has {0} bits; supported are 2048 to 8192")]
    RsaKeySize(usize),
    #[error("the signature of the token does not match the key of the provider")]
    Signature,
    #[error("a claim of the token is missing, or has the wrong type")]
    Claims,
    #[error("the issuer of the token is {0:?}, which is not the configured one")]
    Issuer(String),
    #[error("the audience of the token is {0:?}; expected only this client")]
    Audience(Vec<String>),
    #[error("the authorized party of the token is {0:?}, which is not this client")]
    AuthorizedParty(String),
    #[error("the token has expired")]
    Expired,
    #[error("the token is not valid yet; compare the clocks of this machine and of the provider")]
    NotYetValid,
    #[error("the token was issued in the future; compare the clocks of this machine and of the provider")]
    IssuedInFuture,
    #[error("the nonce of the token is missing, or belongs to another sign-in")]
    Nonce,
    #[error("the subject of the token is empty")]
    Subject,
}

impl From<InvalidToken> for OidcError {
    fn from(error: InvalidToken) -> Self {
        Self::Refused(error.to_string())
    }
}

impl OidcError {
    pub(super) fn unavailable(error: &dyn Error) -> Self {
        Self::Unavailable(describe_chain(error))
    }
}
