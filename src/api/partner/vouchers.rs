//! `GET /orders/{order_id}/vouchers`: retrieval of voucher codes, the only endpoint that returns them.
//!
//! The request is signed, the response is not cacheable, and the audit row is committed before a code is decrypted. A
//! decrypted code exists only in the response body.

use std::sync::Arc;

use actix_web::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use actix_web::{HttpRequest, HttpResponse, web};
use serde::ser::SerializeSeq as _;
use serde::{Serialize, Serializer};
use time::Date;
use utoipa::ToSchema;
use utoipa::openapi::Object;
use vouchsafe_domain::ids::{OrderId, VoucherId};
use vouchsafe_domain::money::{Currency, Money};
use vouchsafe_domain::product::ProductId;

use crate::api::middleware::authentication::{VerifiedRequest, Vouchers};
use super::orders;
use crate::api::error::ApiError;
use vouchsafe_wire::error_code::Code;
use vouchsafe_wire::schema::extensible_enum;
use crate::api::request_outcome::{self, RequestOutcome};
use crate::service::Service;
use crate::store::{CodeRetrieval, RetrievalOutcome, SealedVoucher};
use crate::trace;
use vouchsafe_security::vault::code::{CodePart, VoucherCode};
use vouchsafe_security::vault::seal::Vault;

time::serde::format_description!(iso_date, Date, "[year]-[month]-[day]");

/// `GET /orders/{order_id}/vouchers`.
///
/// # Errors
/// `ORDER_NOT_FOUND`, and `ORDER_NOT_READY` while nothing is allocated.
pub async fn get(
    service: web::Data<Service>,
    request: HttpRequest,
    signed: VerifiedRequest<Vouchers>,
    order_id: web::Path<String>,
) -> Result<HttpResponse, ApiError> {
    let order_id = orders::parse_id(&order_id)?;
    let retrieval = CodeRetrieval {
        partner_id: signed.caller.partner_id(),
        order_id,
        credential_id: signed.caller.credential_id,
        address: signed.caller.address.to_string(),
        trace_id: trace::current_trace_id(),
    };
    let sealed = match service.node.retrieve_codes(retrieval).await? {
        RetrievalOutcome::Vouchers(sealed) => sealed,
        RetrievalOutcome::NotFound => return Err(orders::not_found(order_id)),
        RetrievalOutcome::NotReady => {
            return Err(ApiError::new(
                Code::OrderNotReady,
                "no voucher of the order is allocated yet; retry once GET /orders/{order_id} shows vouchers",
            ));
        }
    };
    let vault = vault_with_keys(&service, &sealed).await?;
    let decrypted = sealed
        .iter()
        .map(|voucher| VoucherCodeBody::decrypt(&vault, voucher))
        .collect::<Result<_, _>>()?;
    let body = serde_json::to_vec(&VoucherCodesBody {
        order_id,
        data: decrypted,
    })
    .map_err(|_| decryption_error())?;
    request_outcome::report(&request, || RequestOutcome::CodesFetched {
        partner_id: signed.caller.partner_id(),
        order_id,
        vouchers: sealed.len(),
    });
    let mut response = HttpResponse::Ok();
    response
        .insert_header((CONTENT_TYPE, "application/json"))
        .insert_header((CACHE_CONTROL, "no-store"));
    Ok(response.body(body))
}

/// The vault with the keys of all these vouchers. Reloads the keys if another node has encrypted with a newer one.
async fn vault_with_keys(service: &Service, sealed: &[SealedVoucher]) -> Result<Arc<Vault>, ApiError> {
    let vault = service.keyring.vault();
    if sealed.iter().all(|voucher| vault.has_key(voucher.sealed.key_id)) {
        return Ok(vault);
    }
    service.keyring.reload().await.map_err(|error| {
        tracing::error!(error.message = %error, "cannot reload the data keys");
        ApiError::unavailable()
    })
}

fn decryption_error() -> ApiError {
    ApiError::new(
        Code::InternalError,
        "the codes could not be decrypted; contact the operator",
    )
}

/// The codes of an order.
#[derive(Serialize, ToSchema)]
#[schema(as = VoucherCodes)]
pub struct VoucherCodesBody<'a> {
    /// Order of the vouchers.
    order_id: OrderId,
    /// The allocated vouchers with their codes.
    data: Vec<VoucherCodeBody<'a>>,
}

/// A voucher with its code.
#[derive(Serialize, ToSchema)]
#[schema(as = VoucherCode)]
struct VoucherCodeBody<'a> {
    /// Identifies the voucher.
    voucher_id: VoucherId,
    /// Product of the voucher.
    product_id: &'a ProductId,
    /// Face value of the voucher.
    denomination: Money,
    /// Currency of the face value.
    currency: Currency,
    /// Last day on which the voucher is valid (UTC). Null if it does not expire.
    #[serde(with = "iso_date::option")]
    #[schema(required)]
    expiry: Option<Date>,
    /// What the holder needs to redeem the voucher: always a `code`, further values depending on the brand.
    #[serde(serialize_with = "serialize_code")]
    #[schema(value_type = [VoucherCredentialBody<'_>])]
    credentials: VoucherCode,
}

impl<'a> VoucherCodeBody<'a> {
    fn decrypt(vault: &Vault, voucher: &'a SealedVoucher) -> Result<Self, ApiError> {
        let decrypted = vault.open(voucher.code_id, &voucher.sku, &voucher.sealed);
        let credentials = decrypted.map_err(|error| {
            tracing::error!(voucher.id = %voucher.voucher_id, error.message = %error, "cannot decrypt a voucher code");
            decryption_error()
        })?;
        Ok(Self {
            voucher_id: voucher.voucher_id,
            product_id: &voucher.sku.product_id,
            denomination: voucher.sku.denomination.of(voucher.currency),
            currency: voucher.currency,
            expiry: voucher.expiry,
            credentials,
        })
    }
}

/// A value that the holder needs to redeem the voucher.
#[derive(Serialize, ToSchema)]
#[schema(as = VoucherCredential)]
struct VoucherCredentialBody<'a> {
    #[serde(rename = "type")]
    #[schema(schema_with = part_schema)]
    kind: &'static str,
    /// The secret value. Treat it like cash.
    value: &'a str,
}

fn part_schema() -> Object {
    let labels = CodePart::ALL.iter().map(|part| part.as_str());
    extensible_enum(
        "Kind of the value: `code` to redeem, `pin` required together with the code, `serial` for support requests, `url` of the \
         redemption page.",
        labels,
    )
}

// `VoucherCode` does not implement `Serialize`, so that no other response can contain it.
fn serialize_code<S: Serializer>(code: &VoucherCode, serializer: S) -> Result<S::Ok, S::Error> {
    let mut list = serializer.serialize_seq(None)?;
    for (part, value) in code.parts() {
        list.serialize_element(&VoucherCredentialBody {
            kind: part.as_str(),
            value,
        })?;
    }
    list.end()
}
