//! Client of an OpenID provider: discovery, the authorization URL, and the exchange of a code for an identity.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use openidconnect::core::{
    CoreAuthDisplay, CoreAuthPrompt, CoreAuthenticationFlow, CoreErrorResponseType, CoreGenderClaim,
    CoreJsonWebKey, CoreJweContentEncryptionAlgorithm, CoreJwsSigningAlgorithm, CoreProviderMetadata,
    CoreRevocableToken, CoreRevocationErrorResponse, CoreTokenIntrospectionResponse, CoreTokenType,
};
use openidconnect::http::Response;
use openidconnect::{
    AccessToken, AsyncHttpClient, AuthorizationCode, Client, ClientId, ClientSecret, CsrfToken,
    EmptyExtraTokenFields, EndpointMaybeSet, EndpointNotSet, EndpointSet, HttpRequest, HttpResponse,
    IdTokenFields, IssuerUrl, Nonce, OAuth2TokenResponse as _, PkceCodeChallenge, PkceCodeVerifier,
    RedirectUrl, RequestTokenError, Scope, StandardErrorResponse, StandardTokenResponse, SubjectIdentifier,
    TokenResponse as _, UserInfoClaims, UserInfoError,
};
use secrecy::SecretString;
use url::Url;
use vouchsafe_domain::error_chain::describe_chain;
use vouchsafe_security::console_url::ConsoleUrl;
use vouchsafe_security::secret::expose;
use vouchsafe_security::secure_url::is_secure;

use super::cached_lookup::{CachedLookup, MaxAge};
use super::claims::{GroupClaims, PersonClaims};
use super::pending::PendingSignIn;
use super::roles::{Identity, RoleMapping};
use crate::next_path::NextPath;

/// Of a whole exchange: a person waits for it.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Longest body of the provider; key sets have some kilobytes.
const MAX_BODY_BYTES: usize = 1024 * 1024;

/// How long endpoints and keys of the provider are used. A sign-in within this time after a change of the keys fails. A provider that
/// failed is spared the sign-ins that people repeat.
const METADATA_MAX_AGE: MaxAge = MaxAge {
    success: Duration::from_secs(60),
    failure: Duration::from_secs(5),
    // A lookup is two requests.
    pending: TIMEOUT.saturating_mul(2),
};

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
#[derive(Debug, Clone, thiserror::Error)]
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
    http: ProviderHttp,
    metadata: CachedLookup<Arc<CoreProviderMetadata>, OidcError>,
}

/// The client with the endpoints of the provider's metadata.
type ProviderClient = Client<
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
    EndpointSet,
    EndpointNotSet,
    EndpointNotSet,
    EndpointNotSet,
    EndpointMaybeSet,
    EndpointMaybeSet,
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
            http: ProviderHttp(http.timeout(TIMEOUT).build()?),
            metadata: CachedLookup::new(METADATA_MAX_AGE),
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
        let response = request.request_async(&self.http).await;
        let response = response.map_err(|error| match error {
            RequestTokenError::ServerResponse(refusal) => OidcError::Refused(refusal.error().to_string()),
            RequestTokenError::Request(error) => OidcError::Unavailable(describe_chain(&error)),
            // Not the body, which may contain tokens.
            _ => OidcError::Unavailable("unexpected response of the token endpoint".to_owned()),
        })?;
        let refused = |reason: &dyn Error| OidcError::Refused(describe_chain(reason));
        let verifier = client.id_token_verifier().set_allowed_algs(ALGORITHMS);
        let token = response
            .id_token()
            .ok_or_else(|| OidcError::Refused("no ID token".to_owned()))?;
        let claims = token
            .claims(&verifier, &Nonce::new(pending.nonce.clone()))
            .map_err(|error| refused(&error))?;
        let subject = claims.subject().clone();
        let mut person = PersonClaims::new(
            claims.email(),
            claims.email_verified(),
            claims.additional_claims(),
        );
        if person.lacks_any_of(&self.settings.roles) && client.user_info_url().is_some() {
            let access_token = response.access_token().clone();
            person = person.or(self.fetch_userinfo(&client, access_token, &subject).await?);
        }
        Ok(person.into_identity(subject.to_string()))
    }

    /// Asks for claims that the ID token lacks.
    async fn fetch_userinfo(
        &self,
        client: &ProviderClient,
        access_token: AccessToken,
        subject: &SubjectIdentifier,
    ) -> Result<PersonClaims, OidcError> {
        let request = client
            .user_info(access_token, Some(subject.clone()))
            .map_err(|error| OidcError::Unavailable(error.to_string()))?;
        let claims: Result<UserInfoClaims<GroupClaims, CoreGenderClaim>, _> =
            request.request_async(&self.http).await;
        let claims = claims.map_err(|error| match error {
            UserInfoError::ClaimsVerification(error) => OidcError::Refused(describe_chain(&error)),
            UserInfoError::Request(error) => OidcError::Unavailable(describe_chain(&error)),
            // Not the body, which has data of the person.
            _ => OidcError::Unavailable("unexpected response of the userinfo endpoint".to_owned()),
        })?;
        Ok(PersonClaims::new(
            claims.email(),
            claims.email_verified(),
            claims.additional_claims(),
        ))
    }

    async fn client(&self) -> Result<ProviderClient, OidcError> {
        let metadata = self.metadata().await?;
        let client = Client::from_provider_metadata(
            CoreProviderMetadata::clone(&metadata),
            ClientId::new(self.settings.client_id.clone()),
            Some(ClientSecret::new(expose(&self.settings.client_secret).to_owned())),
        );
        Ok(client.set_redirect_uri(self.redirect.clone()))
    }

    async fn metadata(&self) -> Result<Arc<CoreProviderMetadata>, OidcError> {
        let lookup = || {
            let (http, issuer) = (self.http.clone(), self.issuer.clone());
            async move {
                let found = CoreProviderMetadata::discover_async(issuer, &http).await;
                found
                    .map(Arc::new)
                    .map_err(|error| OidcError::Unavailable(describe_chain(&error)))
            }
            .boxed()
        };
        self.metadata.get(lookup).await
    }
}

fn is_permitted_issuer(issuer: &str) -> bool {
    Url::parse(issuer).is_ok_and(|url| is_secure(&url) && url.query().is_none() && url.fragment().is_none())
}

/// Why a request to the provider failed.
#[derive(Debug, thiserror::Error)]
enum ExchangeError {
    #[error(transparent)]
    Http(#[from] reqwest::Error),
    #[error("the response is longer than {MAX_BODY_BYTES} bytes")]
    TooLong,
}

/// Sends the requests of the OpenID client.
#[derive(Clone)]
struct ProviderHttp(reqwest::Client);

impl<'client> AsyncHttpClient<'client> for ProviderHttp {
    type Error = ExchangeError;
    type Future = BoxFuture<'client, Result<HttpResponse, ExchangeError>>;

    fn call(&'client self, request: HttpRequest) -> Self::Future {
        exchange(&self.0, request).boxed()
    }
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
