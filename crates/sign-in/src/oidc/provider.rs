//! Client of an OpenID provider: discovery, the authorization URL, and the exchange of a code for an identity.

use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

use openidconnect::core::{
    CoreAuthDisplay, CoreAuthPrompt, CoreAuthenticationFlow, CoreErrorResponseType, CoreGenderClaim,
    CoreJsonWebKey, CoreJweContentEncryptionAlgorithm, CoreJwsSigningAlgorithm, CoreProviderMetadata,
    CoreRevocableToken, CoreRevocationErrorResponse, CoreTokenIntrospectionResponse, CoreTokenType,
};
use openidconnect::http::Response;
use openidconnect::{
    AdditionalClaims, AuthorizationCode, Client, ClientId, ClientSecret, CsrfToken, EmptyExtraTokenFields,
    EndpointMaybeSet, EndpointNotSet, EndpointSet, HttpRequest, HttpResponse, IdTokenFields, IssuerUrl,
    Nonce, PkceCodeChallenge, PkceCodeVerifier, RedirectUrl, RequestTokenError, Scope, StandardErrorResponse,
    StandardTokenResponse, TokenResponse as _,
};
use secrecy::SecretString;
use serde::{Deserialize, Serialize};
use tokio::sync::Mutex;
use url::Url;
use vouchsafe_security::console_url::ConsoleUrl;
use vouchsafe_security::secret::expose;

use super::pending::PendingSignIn;
use super::roles::{Identity, RoleMapping};
use crate::next_path::NextPath;

/// Of a whole exchange: a person waits for it.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Longest body of the provider; key sets have some kilobytes.
const MAX_BODY_BYTES: usize = 1024 * 1024;

/// How long endpoints and keys of the provider are used. A sign-in within this time after a change of the keys fails.
const METADATA_MAX_AGE: Duration = Duration::from_secs(60);

/// Scope and claim of a person's groups.
const GROUPS: &str = "groups";

/// Asymmetric algorithms: with a symmetric one, the client secret would sign identities.
const ALGORITHMS: [CoreJwsSigningAlgorithm; 9] = [
    CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha256,
    CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha384,
    CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha512,
    CoreJwsSigningAlgorithm::RsaSsaPssSha256,
    CoreJwsSigningAlgorithm::RsaSsaPssSha384,
    CoreJwsSigningAlgorithm::RsaSsaPssSha512,
    CoreJwsSigningAlgorithm::EcdsaP256Sha256,
    CoreJwsSigningAlgorithm::EcdsaP384Sha384,
    CoreJwsSigningAlgorithm::EdDsa,
];

/// Registration of the service at a provider.
#[derive(Debug, Clone)]
pub struct OidcSettings {
    pub issuer: String,
    pub client_id: String,
    pub client_secret: SecretString,
    pub roles: RoleMapping,
}

/// Why a sign-in failed. The texts are for the log: they contain no code and no token.
#[derive(Debug, thiserror::Error)]
pub enum OidcError {
    /// The provider did not answer, or not as a provider does.
    #[error("the identity provider is not available: {0}")]
    Unavailable(String),
    /// The provider refused the code, or its ID token is not valid for this sign-in.
    #[error("the identity provider refused the sign-in: {0}")]
    Refused(String),
}

/// A provider that operators sign in at.
pub struct OidcProvider {
    settings: OidcSettings,
    issuer: IssuerUrl,
    redirect: RedirectUrl,
    http: reqwest::Client,
    metadata: Mutex<Option<(Instant, Arc<CoreProviderMetadata>)>>,
}

/// Claims beyond the standard ones.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct GroupClaims {
    #[serde(default)]
    groups: Vec<String>,
}

impl AdditionalClaims for GroupClaims {}

type OidcClient<AuthUrl, TokenUrl, UserInfoUrl> = Client<
    GroupClaims,
    CoreAuthDisplay,
    CoreGenderClaim,
    CoreJweContentEncryptionAlgorithm,
    CoreJsonWebKey,
    CoreAuthPrompt,
    StandardErrorResponse<CoreErrorResponseType>,
    StandardTokenResponse<
        IdTokenFields<
            GroupClaims,
            EmptyExtraTokenFields,
            CoreGenderClaim,
            CoreJweContentEncryptionAlgorithm,
            CoreJwsSigningAlgorithm,
        >,
        CoreTokenType,
    >,
    CoreTokenIntrospectionResponse,
    CoreRevocableToken,
    CoreRevocationErrorResponse,
    AuthUrl,
    EndpointNotSet,
    EndpointNotSet,
    EndpointNotSet,
    TokenUrl,
    UserInfoUrl,
>;

impl OidcProvider {
    /// # Errors
    /// If the issuer is no https URL (or http on loopback), or the HTTP client cannot be built.
    pub fn new(settings: OidcSettings, console: &ConsoleUrl) -> Result<Self, Box<dyn Error + Send + Sync>> {
        if !is_permitted_issuer(&settings.issuer) {
            return Err(
                "VOUCHSAFE_OIDC_ISSUER is not an https URL; http is permitted on loopback only".into(),
            );
        }
        let http = vouchsafe_http_client::client_builder(&settings.issuer)?;
        Ok(Self {
            issuer: IssuerUrl::new(settings.issuer.clone())?,
            redirect: RedirectUrl::new(format!("{console}/sign-in/callback"))?,
            http: http.timeout(TIMEOUT).build()?,
            metadata: Mutex::default(),
            settings,
        })
    }

    /// Host of the provider, for people.
    #[must_use]
    pub fn host(&self) -> &str {
        self.issuer.url().host_str().unwrap_or_default()
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
    pub async fn begin(&self, next: NextPath, now_s: i64) -> Result<(Url, PendingSignIn), OidcError> {
        let client = self.client().await?;
        let (challenge, verifier) = PkceCodeChallenge::new_random_sha256();
        let request = client.authorize_url(
            CoreAuthenticationFlow::AuthorizationCode,
            CsrfToken::new_random,
            Nonce::new_random,
        );
        let metadata = self.metadata().await?;
        // Some providers refuse a scope that they do not know.
        let supported = metadata.scopes_supported().into_iter().flatten();
        let has_groups = supported.into_iter().any(|scope| scope.as_str() == GROUPS);
        let scopes = ["email", "profile"]
            .into_iter()
            .chain(has_groups.then_some(GROUPS));
        let scopes = scopes.map(|scope| Scope::new(scope.to_owned()));
        let request = request.add_scopes(scopes).set_pkce_challenge(challenge);
        let (url, state, nonce) = request.url();
        let pending = PendingSignIn {
            state: state.into_secret(),
            nonce: nonce.secret().clone(),
            verifier: verifier.into_secret(),
            next,
            begun_at_s: now_s,
        };
        Ok((url, pending))
    }

    /// Exchanges the code of a callback for the identity of the person.
    ///
    /// # Errors
    /// [`OidcError`].
    pub async fn finish(&self, pending: &PendingSignIn, code: String) -> Result<Identity, OidcError> {
        let client = self.client().await?;
        let request = client
            .exchange_code(AuthorizationCode::new(code))
            .map_err(|error| OidcError::Unavailable(error.to_string()))?
            .set_pkce_verifier(PkceCodeVerifier::new(pending.verifier.clone()));
        let response = request
            .request_async(&|request| exchange(&self.http, request))
            .await;
        let response = response.map_err(|error| match error {
            RequestTokenError::ServerResponse(refusal) => OidcError::Refused(refusal.error().to_string()),
            RequestTokenError::Request(error) => OidcError::Unavailable(describe(&error)),
            // Not the body, which may contain tokens.
            _ => OidcError::Unavailable("unexpected response of the token endpoint".to_owned()),
        })?;
        let refused = |reason: &dyn Error| OidcError::Refused(describe(reason));
        let verifier = client.id_token_verifier().set_allowed_algs(ALGORITHMS);
        let token = response
            .id_token()
            .ok_or_else(|| OidcError::Refused("no ID token".to_owned()))?;
        let claims = token
            .claims(&verifier, &Nonce::new(pending.nonce.clone()))
            .map_err(|error| refused(&error))?;
        let is_verified = claims.email_verified() == Some(true);
        let email = claims.email().filter(|_| is_verified);
        Ok(Identity {
            subject: claims.subject().to_string(),
            // Other letters than ASCII may become ASCII in lower case, and with it another person's address.
            email: email.map(|email| email.to_ascii_lowercase()),
            groups: claims.additional_claims().groups.clone(),
        })
    }

    async fn client(&self) -> Result<OidcClient<EndpointSet, EndpointMaybeSet, EndpointMaybeSet>, OidcError> {
        let metadata = self.metadata().await?;
        let client = Client::from_provider_metadata(
            CoreProviderMetadata::clone(&metadata),
            ClientId::new(self.settings.client_id.clone()),
            Some(ClientSecret::new(expose(&self.settings.client_secret).to_owned())),
        );
        Ok(client.set_redirect_uri(self.redirect.clone()))
    }

    /// Concurrent sign-ins wait for one request to the provider.
    async fn metadata(&self) -> Result<Arc<CoreProviderMetadata>, OidcError> {
        let mut stored = self.metadata.lock().await;
        if let Some((fetched_at, metadata)) = &*stored
            && fetched_at.elapsed() < METADATA_MAX_AGE
        {
            return Ok(Arc::clone(metadata));
        }
        let fetch = |request| exchange(&self.http, request);
        let found = CoreProviderMetadata::discover_async(self.issuer.clone(), &fetch).await;
        let found = Arc::new(found.map_err(|error| OidcError::Unavailable(describe(&error)))?);
        *stored = Some((Instant::now(), Arc::clone(&found)));
        Ok(found)
    }
}

fn is_permitted_issuer(issuer: &str) -> bool {
    Url::parse(issuer).is_ok_and(|url| {
        let origin: Result<ConsoleUrl, _> = url.origin().ascii_serialization().parse();
        origin.is_ok() && url.query().is_none() && url.fragment().is_none()
    })
}

/// Why a request to the provider failed.
#[derive(Debug, thiserror::Error)]
enum ExchangeError {
    #[error(transparent)]
    Http(#[from] reqwest::Error),
    #[error("the response is longer than {MAX_BODY_BYTES} bytes")]
    TooLong,
}

async fn exchange(client: &reqwest::Client, request: HttpRequest) -> Result<HttpResponse, ExchangeError> {
    let mut response = client.execute(request.try_into()?).await?;
    let mut body = Vec::new();
    while let Some(part) = response.chunk().await? {
        if body.len() + part.len() > MAX_BODY_BYTES {
            return Err(ExchangeError::TooLong);
        }
        body.extend_from_slice(&part);
    }
    let mut received = Response::new(body);
    *received.status_mut() = response.status();
    *received.headers_mut() = response.headers().clone();
    Ok(received)
}

/// An error with its causes.
fn describe(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}
