//! `/vendors`: vendors, their adapters and credentials.
//!
//! Credentials are encrypted on arrival; no response, log line or audit entry contains one. Production
//! rejects the mock adapter.

use std::time::Duration;

use actix_web::{HttpResponse, web};
use secrecy::SecretString;
use serde::{Deserialize, Serialize};
use vouchsafe_domain::change_request::{ChangeKind, ChangePreview};
use vouchsafe_domain::product::parse_slug;
use vouchsafe_domain::vendor::{AdapterKind, Vendor};
use vouchsafe_procurement::http::{VendorUrl, guard};
use vouchsafe_security::vault::seal::SealedBlob;
use vouchsafe_store::{PutVendorOutcome, VendorConfig};
use vouchsafe_wire::error_code::Code;
use vouchsafe_wire::operator::vendors;
use vouchsafe_wire::operator::vendors::{VendorRequest, VendorWithCircuit};

use super::body::Json;
use super::change::{
    Change, ChangeDescription, Execution, Safeguard, submit_with, to_description, to_preview,
};
use crate::api::endpoint::Endpoint;
use crate::api::error::{ApiError, ApiResult};
use crate::api::list_request::{ListRequest, sorted_list_response};
use crate::api::middleware::operator::Operator;
use crate::api::operator::OperatorState;
use crate::api::operator::endpoint::bind;
use crate::api::operator::purchases;

pub(super) fn endpoints() -> [Endpoint; vendors::OPERATIONS.len()] {
    [
        bind(vendors::LIST_VENDORS, list),
        bind(vendors::GET_VENDOR, get),
        bind(vendors::PUT_VENDOR, put),
        bind(vendors::LIST_PURCHASES, purchases::list),
        bind(vendors::GET_PURCHASE, purchases::get),
        bind(vendors::END_PURCHASE, purchases::end),
    ]
}

/// Time for the host of a new URL. A host that does not respond in time is resolved again when the vendor is
/// called.
const RESOLVE_TIMEOUT: Duration = Duration::from_secs(5);

/// `GET /vendors`.
async fn list(service: web::Data<OperatorState>, ListRequest { page, .. }: ListRequest) -> ApiResult {
    let vendors = service.store.vendors.list().await?;
    let bodies = vendors.into_iter().map(|vendor| with_circuit(&service, vendor));
    sorted_list_response(&page, bodies.collect(), |body| body.vendor.vendor_id.clone())
}

/// `GET /vendors/{vendor_id}`.
async fn get(service: web::Data<OperatorState>, vendor_id: web::Path<String>) -> ApiResult {
    let not_found = || {
        ApiError::new(
            Code::VendorNotFound,
            "no such vendor; GET /admin/v1/vendors lists all",
        )
    };
    let vendor_id = parse_slug(&vendor_id).map_err(|_| not_found())?;
    let found = service.store.vendors.find(vendor_id.to_owned()).await?;
    let vendor = found.ok_or_else(not_found)?.vendor;
    Ok(HttpResponse::Ok().json(with_circuit(&service, vendor)))
}

fn with_circuit(service: &OperatorState, vendor: Vendor) -> VendorWithCircuit {
    VendorWithCircuit {
        circuit: service.purchasing.circuit(&vendor),
        vendor,
    }
}

/// `PUT /vendors/{vendor_id}`: 201 if created, 200 if replaced.
async fn put(
    service: web::Data<OperatorState>,
    operator: Operator,
    vendor_id: web::Path<String>,
    Json(request): Json<VendorRequest>,
) -> ApiResult {
    let vendor_id =
        parse_slug(&vendor_id).map_err(|error| ApiError::invalid_field("vendor_id", error.to_string()))?;
    let change = VendorPut {
        vendor_id: vendor_id.to_owned(),
        request,
    };
    let url = change.check(&service).await?;
    let adapter = change.request.validate_adapter(service.environment)?;
    let stored = service.store.vendors.find(change.vendor_id.clone());
    let is_same_server = stored.await?.is_some_and(|stored| {
        stored.vendor.adapter == adapter && stored.vendor.url == url && change.request.credentials.is_none()
    });
    // A vendor's URL receives orders worth money, and its credentials. Adapters without a server and the
    // concurrency are no matter of trust.
    let safeguard = Safeguard::of_change(&service, adapter != AdapterKind::Http || is_same_server);
    submit_with(safeguard, &service, &operator, ChangeKind::VendorPut, change).await
}

/// A new definition of a vendor.
#[derive(Serialize, Deserialize)]
pub(super) struct VendorPut {
    vendor_id: String,
    request: VendorRequest,
}

/// What the second operator sees of it.
#[derive(Serialize)]
struct VendorDescription {
    adapter: AdapterKind,
    url: Option<String>,
    concurrency: u16,
    credentials_changed: bool,
}

impl VendorPut {
    /// Validates the definition and returns the normalized URL.
    async fn check(&self, service: &OperatorState) -> Result<Option<String>, ApiError> {
        self.request.validate_adapter(service.environment)?;
        self.request.validate_concurrency()?;
        self.request.validate_credentials()?;
        let url = self
            .request
            .validate_url()?
            .as_deref()
            .map(parse_url)
            .transpose()?;
        if let (Some(url), Some(guard)) = (&url, guard(service.vendor_network)) {
            let checked = guard.check(url, RESOLVE_TIMEOUT).await;
            checked.map_err(|rejection| {
                let message = format!(
                    "{rejection}; VOUCHSAFE_VENDOR_NETWORK=any also permits other addresses, for example of your own network"
                );
                ApiError::invalid_field("url", message)
            })?;
        }
        Ok(url)
    }
}

impl VendorPut {
    fn description(&self, service: &OperatorState) -> Result<VendorDescription, ApiError> {
        Ok(VendorDescription {
            adapter: self.request.validate_adapter(service.environment)?,
            url: self
                .request
                .validate_url()?
                .as_deref()
                .map(parse_url)
                .transpose()?,
            concurrency: self.request.validate_concurrency()?,
            credentials_changed: self.request.credentials.is_some(),
        })
    }
}

impl Change for VendorPut {
    async fn describe(&self, service: &OperatorState) -> Result<ChangeDescription, ApiError> {
        to_description(&self.vendor_id, None, &self.description(service)?)
    }

    async fn preview(self, service: &OperatorState) -> Result<Option<ChangePreview>, ApiError> {
        let Some(stored) = service.store.vendors.find(self.vendor_id.clone()).await? else {
            return Ok(None);
        };
        let before = VendorDescription {
            adapter: stored.vendor.adapter,
            url: stored.vendor.url,
            concurrency: stored.vendor.concurrency,
            credentials_changed: false,
        };
        to_preview(&before, &self.description(service)?)
    }

    async fn carry_out(self, Execution { service, actor, .. }: Execution<'_>) -> ApiResult {
        // The setting may have changed since the request.
        let url = self.check(service).await?;
        let Self { vendor_id, request } = self;
        let credential = match request.validate_credentials()? {
            Some(credential) => {
                Some(seal_credentials(service, &vendor_id, url.as_deref(), credential).await?)
            }
            None => None,
        };
        let terms = VendorConfig {
            adapter: request.validate_adapter(service.environment)?,
            url,
            concurrency: request.validate_concurrency()?,
            credential,
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
}

/// The normalized URL.
fn parse_url(text: &str) -> Result<String, ApiError> {
    let url: VendorUrl = text
        .parse()
        .map_err(|error: vouchsafe_procurement::http::InvalidVendorUrl| {
            ApiError::invalid_field("url", error.to_string())
        })?;
    Ok(url.as_str().to_owned())
}

async fn seal_credentials(
    service: &OperatorState,
    vendor_id: &str,
    url: Option<&str>,
    credential: &SecretString,
) -> Result<SealedBlob, ApiError> {
    let vault = service.keyring.sealing_vault().await.map_err(|error| {
        tracing::error!(error.message = %error, vendor.id = vendor_id, "no data key for a vendor credential");
        ApiError::unavailable()
    })?;
    vault.seal_credential(vendor_id, url, credential).map_err(|error| {
        tracing::error!(error.message = %error, vendor.id = vendor_id, "cannot encrypt a vendor credential");
        ApiError::new(
            Code::InternalError,
            "cannot encrypt the credentials; nothing was changed",
        )
    })
}
