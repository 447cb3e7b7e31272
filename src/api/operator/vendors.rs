//! `/vendors`: vendors, their adapters and credentials.
//!
//! Credentials are encrypted on arrival; no response, log line or audit entry contains one. Production rejects the mock
//! adapter.

use actix_web::{HttpResponse, web};
use secrecy::SecretString;
use vouchsafe_domain::product::check_slug;
use vouchsafe_domain::vendor::Vendor;
use vouchsafe_procurement::http::VendorUrl;
use vouchsafe_security::vault::seal::SealedBlob;
use vouchsafe_store::{PutVendorOutcome, VendorConfig};
use vouchsafe_wire::error_code::Code;
use vouchsafe_wire::operator::vendors::{VendorBody, VendorRequest};

use super::body::Json;
use crate::api::error::ApiError;
use crate::api::list_request::{ListRequest, sorted_list_response};
use crate::api::middleware::operator::Operator;
use crate::service::Service;

/// `GET /vendors`.
pub(super) async fn list(
    service: web::Data<Service>,
    _operator: Operator,
    ListRequest { page, .. }: ListRequest,
) -> Result<HttpResponse, ApiError> {
    let vendors = service.operator_store.vendors.list().await?;
    let bodies = vendors.into_iter().map(|vendor| with_circuit(&service, vendor));
    sorted_list_response(&page, bodies.collect(), |body| body.vendor.vendor_id.clone())
}

/// `GET /vendors/{vendor_id}`.
pub(super) async fn get(
    service: web::Data<Service>,
    _operator: Operator,
    vendor_id: web::Path<String>,
) -> Result<HttpResponse, ApiError> {
    let not_found = || {
        ApiError::new(
            Code::VendorNotFound,
            "no such vendor; GET /admin/v1/vendors lists all",
        )
    };
    let vendor_id = vendor_id.into_inner();
    check_slug(&vendor_id).map_err(|_| not_found())?;
    let found = service.operator_store.vendors.find(vendor_id).await?;
    let vendor = found.ok_or_else(not_found)?.vendor;
    Ok(HttpResponse::Ok().json(with_circuit(&service, vendor)))
}

fn with_circuit(service: &Service, vendor: Vendor) -> VendorBody {
    VendorBody {
        circuit: service.purchasing.circuit(&vendor),
        vendor,
    }
}

/// `PUT /vendors/{vendor_id}`: 201 if created, 200 if replaced.
pub(super) async fn put(
    service: web::Data<Service>,
    operator: Operator,
    vendor_id: web::Path<String>,
    Json(request): Json<VendorRequest>,
) -> Result<HttpResponse, ApiError> {
    // A vendor's URL receives orders worth money: only admins may set it.
    let actor = operator.audit_actor();
    let vendor_id = vendor_id.into_inner();
    check_slug(&vendor_id).map_err(|error| ApiError::invalid_field("vendor_id", error.to_string()))?;
    let adapter = request.validate_adapter(service.environment)?;
    let url = request.validate_url()?.map(parse_url).transpose()?;
    let concurrency = request.validate_concurrency()?;
    let credential = match request.validate_credentials()? {
        Some(credential) => Some(seal_credentials(&service, &vendor_id, credential).await?),
        None => None,
    };
    let terms = VendorConfig {
        adapter,
        url,
        concurrency,
        credential,
        vendor_id,
    };
    match service.operator_store.vendors.put(terms, actor).await? {
        PutVendorOutcome::Created(vendor) => Ok(HttpResponse::Created().json(vendor)),
        PutVendorOutcome::Replaced(vendor) => Ok(HttpResponse::Ok().json(vendor)),
        PutVendorOutcome::CredentialMissing => Err(ApiError::invalid_field(
            "credentials",
            "required for a new `http` vendor and when the url changes",
        )),
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
    service: &Service,
    vendor_id: &str,
    credential: &SecretString,
) -> Result<SealedBlob, ApiError> {
    let vault = service.keyring.sealing_vault().await.map_err(|error| {
        tracing::error!(error.message = %error, vendor.id = vendor_id, "no data key for a vendor credential");
        ApiError::unavailable()
    })?;
    vault.seal_credential(vendor_id, credential).map_err(|error| {
        tracing::error!(error.message = %error, vendor.id = vendor_id, "cannot encrypt a vendor credential");
        ApiError::new(
            Code::InternalError,
            "cannot encrypt the credentials; nothing was changed",
        )
    })
}
