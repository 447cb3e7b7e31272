//! `/vendors`: who vouchers are bought from, and how.
//!
//! Rule: a credential comes in and is sealed; no answer, no line and no entry of the trail has it. Where money is real
//! nothing is bought from the mock.

use actix_web::{HttpRequest, HttpResponse, web};
use secrecy::SecretString;
use serde::{Deserialize, Deserializer};
use utoipa::ToSchema;
use vouchsafe_actors::domain::product::check_slug;

use super::body::Json;
use super::operator::{Operator, Role};
use crate::access::environment::Environment;
use crate::errors::{ApiError, Code};
use crate::http::Page;
use crate::json;
use crate::secrets::expose;
use crate::service::Service;
use crate::store::{PutVendor, VendorTerms};
use crate::vault::seal::Sealed;
use crate::vendor::http::VendorUrl;
use crate::vendor::{AdapterKind, DEFAULT_CONCURRENCY, MAX_CONCURRENCY};

/// Longest credential, in bytes: tokens with claims in them take a few KiB, and it has to fit into a header.
const MAX_CREDENTIAL: usize = 4_096;

/// What a vendor is to be.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct VendorRequest {
    /// What speaks to it.
    #[serde(deserialize_with = "json::word")]
    adapter: AdapterKind,
    /// Where it is, for `http` alone: https, or http to this machine.
    #[serde(default)]
    #[schema(max_length = 2_048)]
    url: Option<String>,
    /// What it is shown as a bearer token, for `http` alone. Never shown again. Left out, the one that is kept stays, as
    /// long as the URL does.
    #[serde(default, deserialize_with = "secret")]
    #[schema(value_type = Option<String>, min_length = 1, max_length = 4_096, write_only)]
    credentials: Option<SecretString>,
    /// How many purchases may be under way with it at a time; 4 where nothing is said.
    #[serde(default)]
    #[schema(minimum = 1, maximum = 64)]
    concurrency: Option<u16>,
}

/// `GET /vendors`.
pub(super) async fn list(
    service: web::Data<Service>,
    _operator: Operator,
    request: HttpRequest,
) -> Result<HttpResponse, ApiError> {
    let page = Page::read(&request, &[])?;
    let all = service.store.list_vendors().await?.into_iter();
    let after = page.after::<String>()?;
    let rest = all.filter(|vendor| after.as_ref().is_none_or(|after| vendor.vendor_id > *after));
    Ok(page.answer(rest.take(page.fetch()).collect(), |vendor| {
        vendor.vendor_id.clone()
    }))
}

/// `PUT /vendors/{vendor_id}`: 201 when it is new, 200 when it was there.
pub(super) async fn put(
    service: web::Data<Service>,
    operator: Operator,
    vendor_id: web::Path<String>,
    Json(request): Json<VendorRequest>,
) -> Result<HttpResponse, ApiError> {
    // Who may send money's worth of secrets to a server may hand out access.
    let by = operator.may(Role::Admin)?;
    let vendor_id = vendor_id.into_inner();
    check_slug(&vendor_id).map_err(|error| ApiError::invalid("vendor_id", error.to_string()))?;
    let terms = VendorTerms {
        adapter: request.adapter_in(service.environment)?,
        url: request.url()?,
        concurrency: request.concurrency()?,
        credential: request.sealed(&service, &vendor_id).await?,
        vendor_id,
    };
    match service.store.put_vendor(terms, by).await? {
        PutVendor::Created(vendor) => Ok(HttpResponse::Created().json(vendor)),
        PutVendor::Replaced(vendor) => Ok(HttpResponse::Ok().json(vendor)),
        PutVendor::CredentialMissing => Err(ApiError::invalid(
            "credentials",
            "a vendor of the http adapter needs them: a new one, and one whose url changes",
        )),
    }
}

impl VendorRequest {
    fn adapter_in(&self, environment: Environment) -> Result<AdapterKind, ApiError> {
        match (self.adapter, environment) {
            (AdapterKind::Mock, Environment::Production) => Err(ApiError::invalid(
                "adapter",
                "the mock sells fake vouchers, in the sandbox alone; expected `http` or `manual`",
            )),
            (adapter, _) => Ok(adapter),
        }
    }

    /// The URL in its one spelling: there for `http`, and for no other.
    fn url(&self) -> Result<Option<String>, ApiError> {
        match (self.adapter, &self.url) {
            (AdapterKind::Http, Some(url)) => {
                let url: VendorUrl =
                    url.parse()
                        .map_err(|error: crate::vendor::http::InvalidVendorUrl| {
                            ApiError::invalid("url", error.to_string())
                        })?;
                Ok(Some(url.as_str().to_owned()))
            }
            (AdapterKind::Http, None) => Err(ApiError::invalid("url", "the http adapter needs it")),
            (AdapterKind::Mock | AdapterKind::Manual, None) => Ok(None),
            (AdapterKind::Mock | AdapterKind::Manual, Some(_)) => Err(only_http("url")),
        }
    }

    fn concurrency(&self) -> Result<u16, ApiError> {
        let concurrency = self.concurrency.unwrap_or(DEFAULT_CONCURRENCY);
        let fits = (1..=MAX_CONCURRENCY).contains(&concurrency);
        fits.then_some(concurrency)
            .ok_or_else(|| ApiError::invalid("concurrency", format!("expected 1 to {MAX_CONCURRENCY}")))
    }

    async fn sealed(&self, service: &Service, vendor_id: &str) -> Result<Option<Sealed>, ApiError> {
        let Some(credential) = &self.credentials else {
            return Ok(None);
        };
        if self.adapter != AdapterKind::Http {
            return Err(only_http("credentials"));
        }
        let text = expose(credential);
        if !(1..=MAX_CREDENTIAL).contains(&text.len()) || !text.bytes().all(|b| b.is_ascii_graphic()) {
            let message = format!("expected 1 to {MAX_CREDENTIAL} visible ASCII characters");
            return Err(ApiError::invalid("credentials", message));
        }
        let vault = service.keyring.sealing().await.map_err(|error| {
            tracing::error!(%error, vendor.id = vendor_id, "no data key can be had for a credential");
            ApiError::unavailable()
        })?;
        let sealed = vault.seal_credential(vendor_id, credential).map_err(|error| {
            tracing::error!(%error, vendor.id = vendor_id, "a credential cannot be sealed");
            ApiError::new(
                Code::InternalError,
                "the credentials could not be sealed; nothing was changed",
            )
        })?;
        Ok(Some(sealed))
    }
}

/// A text that is not to be seen from here on.
fn secret<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<SecretString>, D::Error> {
    Option::<String>::deserialize(deserializer).map(|text| text.map(SecretString::from))
}

fn only_http(field: &str) -> ApiError {
    ApiError::invalid(field, "is for the http adapter alone; leave it out")
}
