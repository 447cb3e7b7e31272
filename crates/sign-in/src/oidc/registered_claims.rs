//! Claims that bind a token to its issuer, its recipient and a time (RFC 7519 4.1, OpenID Connect Core
//! 3.1.3.7).

use serde::Deserialize;

use super::claims::one_or_many;
use super::error::InvalidToken;

/// Tolerance for `iat` and `nbf` in the future: the clock of the provider may be ahead. `exp` has none,
/// because a token is checked seconds after its issue.
const CLOCK_SKEW_S: f64 = 60.0;

/// The registration of this service at the provider.
#[derive(Clone, Copy)]
pub(super) struct Registration<'a> {
    pub(super) issuer: &'a str,
    pub(super) client_id: &'a str,
}

/// A claim of the wrong type fails to parse, so it never counts as absent.
#[derive(Deserialize)]
pub(super) struct RegisteredClaims {
    iss: String,
    pub(super) sub: String,
    #[serde(default, deserialize_with = "one_or_many")]
    aud: Option<Vec<String>>,
    azp: Option<String>,
    // Unix time; RFC 7519 permits fractions.
    pub(super) exp: Option<f64>,
    pub(super) iat: Option<f64>,
    nbf: Option<f64>,
}

impl RegisteredClaims {
    /// Checks the claims that are present, and that the issuer, the audience and the subject are.
    pub(super) fn check(&self, registration: Registration<'_>, now_s: i64) -> Result<(), InvalidToken> {
        self.check_parties(registration)?;
        #[allow(clippy::cast_precision_loss)] // exact for the next 285 million years
        self.check_times(now_s as f64)
    }

    fn check_parties(&self, registration: Registration<'_>) -> Result<(), InvalidToken> {
        let client_id = registration.client_id;
        if self.iss != registration.issuer {
            return Err(InvalidToken::Issuer(self.iss.clone()));
        }
        let audience = self.aud.as_deref().unwrap_or_default();
        // Another audience could present the token here and pass itself off as the person, so none is
        // trusted.
        if audience.is_empty() || audience.iter().any(|audience| audience != client_id) {
            return Err(InvalidToken::Audience(audience.to_vec()));
        }
        match &self.azp {
            Some(azp) if azp != client_id => return Err(InvalidToken::AuthorizedParty(azp.clone())),
            _ => {}
        }
        // Subjects identify accounts.
        if self.sub.is_empty() {
            return Err(InvalidToken::Subject);
        }
        Ok(())
    }

    fn check_times(&self, now_s: f64) -> Result<(), InvalidToken> {
        let is_in_future = |at_s: Option<f64>| at_s.is_some_and(|at_s| at_s > now_s + CLOCK_SKEW_S);
        if self.exp.is_some_and(|exp| now_s >= exp) {
            return Err(InvalidToken::Expired);
        }
        if is_in_future(self.nbf) {
            return Err(InvalidToken::NotYetValid);
        }
        if is_in_future(self.iat) {
            return Err(InvalidToken::IssuedInFuture);
        }
        Ok(())
    }
}
