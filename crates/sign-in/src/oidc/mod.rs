//! Sign-in by OpenID Connect: authorization code flow with PKCE.
//!
//! | Step | State of the browser |
//! |---|---|
//! | `GET /sign-in/oidc`: redirect to the provider | a cookie with state, nonce and PKCE verifier, for 10 minutes |
//! | the person signs in at the provider | the same |
//! | `GET /sign-in/callback`: the state is that of the cookie; exchange the code with the verifier; check signature, issuer, audience, expiry and nonce of the ID token | the cookie is removed, a session begins |
//!
//! Nothing is stored on the server between the steps, so any node finishes what another one began.

mod authorization_request;
mod cached_lookup;
mod claims;
mod error;
mod exchange;
mod id_token;
mod key_set;
mod metadata;
mod pending;
mod provider;
mod registered_claims;
mod roles;
mod signature_scheme;
mod signed_token;
#[cfg(test)]
mod testing;
mod token_endpoint;
mod userinfo;

pub use error::OidcError;
pub use pending::{MAX_AGE_S, PendingSignIn, SignInPurpose};
pub use provider::{OidcProvider, OidcSettings};
pub use roles::{Identity, InvalidRoleMapping, RoleMapping};
