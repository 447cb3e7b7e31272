//! Client of an OpenID provider: discovery, the authorization URL, and the exchange of a code for an
//! identity.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use reqwest::header::{ACCEPT, CONTENT_TYPE};
use secrecy::SecretString;
use url::Url;
use vouchsafe_domain::operator_session::is_recent_authentication;
use vouchsafe_security::console_url::ConsoleUrl;
use vouchsafe_security::secret::expose;
use vouchsafe_security::secure_url::is_secure;

use super::authorization_request::authorization_url;
use super::cached_lookup::{CachedLookup, MaxAge};
use super::error::OidcError;
use super::exchange::{JSON, JWK_SET, ProviderResponse, exchange};
use super::id_token;
use super::key_set::KeySet;
use super::metadata::{Endpoint, ProviderMetadata, discovery_url};
use super::pending::{PendingSignIn, SignInPurpose};
use super::registered_claims::Registration;
use super::roles::{Identity, RoleMapping};
use super::token_endpoint::{CodeGrant, TokenRequest, Tokens};
use super::userinfo;
use crate::next_path::NextPath;

/// Maximum time of a whole exchange: a person waits for it.
const TIMEOUT: Duration = Duration::from_secs(10);

/// How long endpoints and keys of the provider are used. A sign-in within this time after a change of the
/// keys fails. A provider that failed is spared the sign-ins that people repeat.
const METADATA_MAX_AGE: MaxAge = MaxAge {
    success: Duration::from_secs(60),
    failure: Duration::from_secs(5),
    // A lookup is two requests.
    pending: TIMEOUT.saturating_mul(2),
};

/// Registration of the service at a provider.
#[derive(Debug, Clone)]
pub struct OidcSettings {
    pub issuer: String,
    pub client_id: String,
    pub client_secret: SecretString,
    pub roles: RoleMapping,
    /// Classes of authentication that count for a step-up (`acr`); without one, each does.
    pub acr_values: Vec<String>,
}

/// A provider that operators sign in at.
pub struct OidcProvider {
    settings: OidcSettings,
    issuer: Url,
    redirect_uri: String,
    http: reqwest::Client,
    discovery: CachedLookup<Arc<Discovery>, OidcError>,
}

/// Endpoints and keys that the provider publishes.
struct Discovery {
    metadata: ProviderMetadata,
    keys: KeySet,
}

impl OidcProvider {
    /// # Errors
    /// If the issuer is no https URL (or http on loopback), or the HTTP client cannot be built.
    pub fn new(settings: OidcSettings, console: &ConsoleUrl) -> Result<Self, Box<dyn Error + Send + Sync>> {
        let issuer = Url::parse(&settings.issuer)
            .ok()
            .filter(is_permitted_issuer)
            .ok_or("VOUCHSAFE_OIDC_ISSUER is not an https URL; http is permitted on loopback only")?;
        let http = vouchsafe_http_client::client_builder(&settings.issuer)?;
        Ok(Self {
            issuer,
            redirect_uri: format!("{console}/sign-in/callback"),
            http: http.timeout(TIMEOUT).build()?,
            discovery: CachedLookup::new(METADATA_MAX_AGE),
            settings,
        })
    }

    /// Host of the provider, for people.
    #[must_use]
    pub fn host(&self) -> &str {
        self.issuer.host_str().unwrap_or_default()
    }

    #[must_use]
    pub fn issuer(&self) -> &str {
        &self.settings.issuer
    }

    #[must_use]
    pub const fn roles(&self) -> &RoleMapping {
        &self.settings.roles
    }

    /// Begins a sign-in: where to send the browser, and what it must keep.
    ///
    /// # Errors
    /// [`OidcError::Unavailable`].
    pub async fn begin(
        &self,
        next: NextPath,
        purpose: SignInPurpose,
        now_s: i64,
    ) -> Result<(Url, PendingSignIn), OidcError> {
        let discovery = self.discover().await?;
        let no_random_bytes = |_| OidcError::Unavailable("no random bytes for a sign-in".to_owned());
        let pending = PendingSignIn::generate(next, now_s, purpose).map_err(no_random_bytes)?;
        let url = authorization_url(
            &discovery.metadata,
            &self.settings.client_id,
            &self.redirect_uri,
            &pending,
            &self.settings.acr_values,
        );
        Ok((url, pending))
    }

    /// Exchanges the code of a callback for the identity of the person.
    ///
    /// # Errors
    /// [`OidcError`].
    pub async fn finish(
        &self,
        pending: &PendingSignIn,
        code: String,
        now_s: i64,
    ) -> Result<Identity, OidcError> {
        let discovery = self.discover().await?;
        let tokens = self.exchange_code(&discovery.metadata, pending, &code).await?;
        let person = id_token::verify(
            tokens.id_token()?,
            &discovery.keys,
            self.registration(),
            &pending.nonce,
            now_s,
        )?;
        let authenticated_at_s = person.authentication.at_s(&self.settings.acr_values);
        if pending.purpose == SignInPurpose::StepUp
            && !authenticated_at_s.is_some_and(|at_s| is_recent_authentication(at_s, now_s))
        {
            return Err(OidcError::NotRecent);
        }
        let mut claims = person.claims;
        if claims.lacks_any_of(&self.settings.roles)
            && let Some(endpoint) = &discovery.metadata.userinfo_endpoint
        {
            let response = self.fetch_userinfo(endpoint, &tokens).await?;
            let registration = self.registration();
            let parsed = userinfo::parse(&response, &person.subject, &discovery.keys, registration, now_s);
            claims = claims.or(parsed?);
        }
        Ok(claims.into_identity(person.subject, authenticated_at_s))
    }

    async fn exchange_code(
        &self,
        metadata: &ProviderMetadata,
        pending: &PendingSignIn,
        code: &str,
    ) -> Result<Tokens, OidcError> {
        let grant = CodeGrant {
            code,
            verifier: &pending.verifier,
            redirect_uri: &self.redirect_uri,
            client_id: &self.settings.client_id,
            client_secret: expose(&self.settings.client_secret),
        };
        let content = TokenRequest::new(&grant, metadata.client_auth_method());
        let mut request = self
            .http
            .post(Url::clone(&metadata.token_endpoint))
            .header(ACCEPT, JSON)
            .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
            .body(content.form);
        if let Some((name, password)) = content.basic {
            request = request.basic_auth(name, Some(password));
        }
        Tokens::parse(&exchange(request).await?)
    }

    /// Asks for claims that the ID token lacks.
    async fn fetch_userinfo(
        &self,
        endpoint: &Endpoint,
        tokens: &Tokens,
    ) -> Result<ProviderResponse, OidcError> {
        exchange(get(&self.http, endpoint).bearer_auth(&tokens.access_token)).await
    }

    fn registration(&self) -> Registration<'_> {
        Registration {
            issuer: &self.settings.issuer,
            client_id: &self.settings.client_id,
        }
    }

    async fn discover(&self) -> Result<Arc<Discovery>, OidcError> {
        let lookup = || {
            let (http, issuer) = (self.http.clone(), self.settings.issuer.clone());
            async move { fetch_discovery(&http, &issuer).await.map(Arc::new) }.boxed()
        };
        self.discovery.get(lookup).await
    }
}

fn is_permitted_issuer(issuer: &Url) -> bool {
    is_secure(issuer) && issuer.query().is_none() && issuer.fragment().is_none()
}

async fn fetch_discovery(http: &reqwest::Client, issuer: &str) -> Result<Discovery, OidcError> {
    let url = discovery_url(issuer).map_err(|error| OidcError::unavailable(&error))?;
    let response = exchange(get(http, &url)).await?;
    if !response.is_ok_with(&[JSON]) {
        return Err(response.unexpected("discovery"));
    }
    let metadata = ProviderMetadata::parse(&response.body, issuer);
    let metadata = metadata.map_err(|error| OidcError::unavailable(&error))?;
    let response = exchange(get(http, &metadata.jwks_uri)).await?;
    if !response.is_ok_with(&[JSON, JWK_SET]) {
        return Err(response.unexpected("key set"));
    }
    let keys = KeySet::parse(&response.body).map_err(|_| response.unexpected("key set"))?;
    Ok(Discovery { metadata, keys })
}

fn get(http: &reqwest::Client, url: &Url) -> reqwest::RequestBuilder {
    http.get(url.clone()).header(ACCEPT, JSON)
}
