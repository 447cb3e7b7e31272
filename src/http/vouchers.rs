//! `GET /orders/{order_id}/vouchers`: the one place where codes leave the service.
//!
//! Signed, never cached, and written to the trail before a code is decrypted. Each code is opened into the answer's bytes
//! and nowhere else.

use std::sync::Arc;

use actix_web::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use actix_web::{HttpResponse, web};
use serde::ser::SerializeSeq as _;
use serde::{Serialize, Serializer};
use time::Date;
use utoipa::ToSchema;
use utoipa::openapi::Object;
use vouchsafe_actors::domain::ids::{OrderId, VoucherId};
use vouchsafe_actors::domain::money::{Currency, Money};
use vouchsafe_actors::domain::product::ProductId;

use super::caller::{Signed, Vouchers};
use super::orders;
use crate::errors::{ApiError, Code};
use crate::openapi::open_words;
use crate::service::Service;
use crate::store::{Retrieval, Retrieved, SealedVoucher};
use crate::trace;
use crate::vault::code::{Part, VoucherCode};
use crate::vault::seal::Vault;

time::serde::format_description!(iso_day, Date, "[year]-[month]-[day]");

/// `GET /orders/{order_id}/vouchers`.
///
/// # Errors
/// `ORDER_NOT_FOUND`, and `ORDER_NOT_READY` while nothing is allocated.
pub async fn get(
    service: web::Data<Service>,
    signed: Signed<Vouchers>,
    order_id: web::Path<String>,
) -> Result<HttpResponse, ApiError> {
    let order_id = orders::parse_id(&order_id)?;
    let retrieval = Retrieval {
        partner_id: signed.caller.partner_id(),
        order_id,
        credential_id: signed.caller.credential_id,
        address: signed.caller.address.to_string(),
        trace_id: trace::current(),
    };
    let sealed = match service.node.retrieve_codes(retrieval).await? {
        Retrieved::Vouchers(sealed) => sealed,
        Retrieved::NotFound => return Err(orders::not_found(order_id)),
        Retrieved::NotReady => {
            return Err(ApiError::new(
                Code::OrderNotReady,
                "no voucher of the order is allocated",
            ));
        }
    };
    let vault = vault_for(&service, &sealed).await?;
    let opened = sealed
        .iter()
        .map(|voucher| OpenedVoucher::open(&vault, voucher))
        .collect::<Result<_, _>>()?;
    let body = serde_json::to_vec(&Codes {
        order_id,
        data: opened,
    })
    .map_err(|_| sealed_for_good())?;
    if let Some(watch) = &service.certification {
        let partner_id = signed.caller.partner_id();
        watch.saw_codes(partner_id, service.clock.now(), order_id, sealed.len());
    }
    let mut response = HttpResponse::Ok();
    response
        .insert_header((CONTENT_TYPE, "application/json"))
        .insert_header((CACHE_CONTROL, "no-store"));
    Ok(response.body(body))
}

/// The keys of all these. Another node may have sealed under one that it made since ours were read.
async fn vault_for(service: &Service, sealed: &[SealedVoucher]) -> Result<Arc<Vault>, ApiError> {
    let vault = service.keyring.vault();
    if sealed.iter().all(|voucher| vault.has_key(voucher.sealed.key_id)) {
        return Ok(vault);
    }
    service.keyring.reload().await.map_err(|error| {
        tracing::error!(%error, "the data keys cannot be read again");
        ApiError::unavailable()
    })
}

fn sealed_for_good() -> ApiError {
    ApiError::new(
        Code::InternalError,
        "the codes could not be opened; contact the operator",
    )
}

/// The codes of an order.
#[derive(Serialize, ToSchema)]
#[schema(as = VoucherCodes)]
pub(super) struct Codes<'a> {
    /// Whose they are.
    order_id: OrderId,
    /// A voucher each.
    data: Vec<OpenedVoucher<'a>>,
}

/// A voucher with its code.
#[derive(Serialize, ToSchema)]
#[schema(as = VoucherCode)]
struct OpenedVoucher<'a> {
    /// Its id.
    voucher_id: VoucherId,
    /// Of which product.
    product_id: &'a ProductId,
    /// Its face value.
    denomination: Money,
    /// Of what.
    currency: Currency,
    /// The last day on which it is valid (UTC); null where it never ends.
    #[serde(with = "iso_day::option")]
    #[schema(required)]
    expiry: Option<Date>,
    /// What its holder needs to redeem it: always a `code`, others as the brand has them.
    #[serde(serialize_with = "spell_out")]
    #[schema(value_type = [Credential<'_>])]
    credentials: VoucherCode,
}

impl<'a> OpenedVoucher<'a> {
    fn open(vault: &Vault, voucher: &'a SealedVoucher) -> Result<Self, ApiError> {
        let opened = vault.open(voucher.code_id, &voucher.sku, &voucher.sealed);
        let credentials = opened.map_err(|error| {
            tracing::error!(voucher.id = %voucher.voucher_id, %error, "a code could not be opened");
            sealed_for_good()
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

/// A part of a code.
#[derive(Serialize, ToSchema)]
#[schema(as = VoucherCredential)]
struct Credential<'a> {
    #[serde(rename = "type")]
    #[schema(schema_with = part_schema)]
    kind: &'static str,
    /// Secret: keep it as you keep money.
    value: &'a str,
}

fn part_schema() -> Object {
    let words = Part::ALL.iter().map(|part| part.as_str());
    open_words(
        "What the value is: `code` is redeemed, `pin` is asked for beside it, `serial` is for support, `url` is where to redeem.",
        words,
    )
}

/// The code type itself cannot be serialised; this answer alone spells it out.
fn spell_out<S: Serializer>(code: &VoucherCode, serializer: S) -> Result<S::Ok, S::Error> {
    let mut list = serializer.serialize_seq(None)?;
    for (part, value) in code.credentials() {
        list.serialize_element(&Credential {
            kind: part.as_str(),
            value,
        })?;
    }
    list.end()
}
