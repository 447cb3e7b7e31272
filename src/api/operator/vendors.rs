//! `/vendors`: vendors, their adapters and credentials.
//!
//! Credentials are encrypted on arrival; no response, log line or audit entry contains one. Production rejects the mock
//! adapter.

use actix_web::{HttpRequest, HttpResponse, web};
use secrecy::SecretString;
use serde::{Deserialize, Deserializer};
use utoipa::ToSchema;
use vouchsafe_domain::product::check_slug;

use super::body::Json;
use crate::api::error::ApiError;
use crate::api::middleware::operator::{Operator, Role};
use vouchsafe_wire::page::PageRequest;
use vouchsafe_procurement::http::VendorUrl;
use crate::service::Service;
use vouchsafe_store::{PutVendorOutcome, VendorConfig};
use vouchsafe_domain::vendor::{AdapterKind, DEFAULT_CONCURRENCY, MAX_CONCURRENCY};
use vouchsafe_security::environment::Environment;
use vouchsafe_security::secret::expose;
use vouchsafe_security::vault::seal::SealedBlob;
use vouchsafe_wire::error_code::Code;
use vouchsafe_wire::json;

/// In bytes: tokens with claims take a few KiB, and the credential must fit into a header.
const MAX_CREDENTIAL: usize = 4_096;

/// Definition of a vendor.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct VendorRequest {
    /// Adapter through which vouchers are bought.
    #[serde(deserialize_with = "json::enum_value")]
    adapter: AdapterKind,
    /// URL of the vendor's API, for `http` only: https, or http to the same machine.
    #[serde(default)]
    #[schema(max_length = 2_048)]
    url: Option<String>,
    /// Bearer token for the vendor, for `http` only; never shown. If omitted, the stored one stays unless the URL
    /// changes.
    #[serde(default, deserialize_with = "deserialize_secret")]
    #[schema(value_type = Option<String>, min_length = 1, max_length = 4_096, write_only)]
    credentials: Option<SecretString>,
    /// Maximum number of purchases in flight; default 4.
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
    let page = PageRequest::parse(request.path(), request.query_string(), &[])?;
    let all = service.store.vendors.list().await?.into_iter();
    let after = page.after::<String>()?;
    let rest = all.filter(|vendor| after.as_ref().is_none_or(|after| vendor.vendor_id > *after));
    Ok(HttpResponse::Ok().json(page.body(rest.take(page.fetch_limit()).collect(), |vendor| {
        vendor.vendor_id.clone()
    })))
}

/// `PUT /vendors/{vendor_id}`: 201 if created, 200 if replaced.
pub(super) async fn put(
    service: web::Data<Service>,
    operator: Operator,
    vendor_id: web::Path<String>,
    Json(request): Json<VendorRequest>,
) -> Result<HttpResponse, ApiError> {
    // A vendor's URL receives orders worth money: only admins may set it.
    let actor = operator.authorize(Role::Admin)?;
    let vendor_id = vendor_id.into_inner();
    check_slug(&vendor_id).map_err(|error| ApiError::invalid_field("vendor_id", error.to_string()))?;
    let terms = VendorConfig {
        adapter: request.validate_adapter(service.environment)?,
        url: request.validate_url()?,
        concurrency: request.validate_concurrency()?,
        credential: request.seal_credentials(&service, &vendor_id).await?,
        vendor_id,
    };
    match service.store.vendors.put(terms, actor).await? {
        PutVendorOutcome::Created(vendor) => Ok(HttpResponse::Created().json(vendor)),
        PutVendorOutcome::Replaced(vendor) => Ok(HttpResponse::Ok().json(vendor)),
        PutVendorOutcome::CredentialMissing => Err(ApiError::invalid_field(
            "credentials",
            "required for a new `http` vendor and when the url changes",
        )),
    }
}

impl VendorRequest {
    fn validate_adapter(&self, environment: Environment) -> Result<AdapterKind, ApiError> {
        match (self.adapter, environment) {
            (AdapterKind::Mock, Environment::Production) => Err(ApiError::invalid_field(
                "adapter",
                "the adapter `mock` is available in the sandbox only; expected `http` or `manual`",
            )),
            (adapter, _) => Ok(adapter),
        }
    }

    /// The normalized URL; required for `http`, forbidden for other adapters.
    fn validate_url(&self) -> Result<Option<String>, ApiError> {
        match (self.adapter, &self.url) {
            (AdapterKind::Http, Some(url)) => {
                let url: VendorUrl =
                    url.parse()
                        .map_err(|error: vouchsafe_procurement::http::InvalidVendorUrl| {
                            ApiError::invalid_field("url", error.to_string())
                        })?;
                Ok(Some(url.as_str().to_owned()))
            }
            (AdapterKind::Http, None) => {
                Err(ApiError::invalid_field("url", "required for the adapter `http`"))
            }
            (AdapterKind::Mock | AdapterKind::Manual, None) => Ok(None),
            (AdapterKind::Mock | AdapterKind::Manual, Some(_)) => Err(http_only_error("url")),
        }
    }

    fn validate_concurrency(&self) -> Result<u16, ApiError> {
        let concurrency = self.concurrency.unwrap_or(DEFAULT_CONCURRENCY);
        let fits = (1..=MAX_CONCURRENCY).contains(&concurrency);
        fits.then_some(concurrency)
            .ok_or_else(|| ApiError::invalid_field("concurrency", format!("expected 1 to {MAX_CONCURRENCY}")))
    }

    async fn seal_credentials(
        &self,
        service: &Service,
        vendor_id: &str,
    ) -> Result<Option<SealedBlob>, ApiError> {
        let Some(credential) = &self.credentials else {
            return Ok(None);
        };
        if self.adapter != AdapterKind::Http {
            return Err(http_only_error("credentials"));
        }
        let text = expose(credential);
        if !(1..=MAX_CREDENTIAL).contains(&text.len()) || !text.bytes().all(|b| b.is_ascii_graphic()) {
            let message = format!("expected 1 to {MAX_CREDENTIAL} visible ASCII characters");
            return Err(ApiError::invalid_field("credentials", message));
        }
        let vault = service.keyring.sealing_vault().await.map_err(|error| {
            tracing::error!(error.message = %error, vendor.id = vendor_id, "no data key for a vendor credential");
            ApiError::unavailable()
        })?;
        let sealed = vault.seal_credential(vendor_id, credential).map_err(|error| {
            tracing::error!(error.message = %error, vendor.id = vendor_id, "cannot encrypt a vendor credential");
            ApiError::new(
                Code::InternalError,
                "cannot encrypt the credentials; nothing was changed",
            )
        })?;
        Ok(Some(sealed))
    }
}

fn deserialize_secret<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<SecretString>, D::Error> {
    Option::<String>::deserialize(deserializer).map(|text| text.map(SecretString::from))
}

fn http_only_error(field: &str) -> ApiError {
    ApiError::invalid_field(field, "allowed for the adapter `http` only; omit it")
}
