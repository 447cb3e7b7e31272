//! Response body of `GET /orders/{order_id}/vouchers`, the only one with voucher codes.

use serde::ser::SerializeSeq as _;
use serde::{Serialize, Serializer};
use strum::VariantArray as _;
use time::Date;
use utoipa::ToSchema;
use utoipa::openapi::Object;
use vouchsafe_domain::ids::{OrderId, VoucherId};
use vouchsafe_domain::money::{Currency, Money};
use vouchsafe_domain::product::ProductId;
use vouchsafe_security::vault::code::{CodePart, VoucherCode};

use crate::schema::extensible_enum;

/// The codes of an order.
#[derive(Serialize, ToSchema)]
#[schema(as = VoucherCodes)]
pub struct VoucherCodesBody<'a> {
    /// Order of the vouchers.
    pub order_id: OrderId,
    /// The allocated vouchers with their codes.
    pub data: Vec<VoucherCodeBody<'a>>,
}

/// A voucher with its code.
#[derive(Serialize, ToSchema)]
#[schema(as = VoucherCode)]
pub struct VoucherCodeBody<'a> {
    /// Identifies the voucher.
    pub voucher_id: VoucherId,
    /// Product of the voucher.
    pub product_id: &'a ProductId,
    /// Face value of the voucher.
    pub denomination: Money,
    /// Currency of the face value.
    pub currency: Currency,
    /// Last day on which the voucher is valid (UTC). Null if it does not expire.
    #[serde(with = "vouchsafe_domain::iso_date::option")]
    #[schema(required)]
    pub expiry: Option<Date>,
    /// What the holder needs to redeem the voucher: always a `code`, further values depending on the brand.
    #[serde(serialize_with = "serialize_code")]
    #[schema(value_type = [VoucherCredential<'_>])]
    pub credentials: VoucherCode,
}

/// A value that the holder needs to redeem the voucher.
#[derive(Serialize, ToSchema)]
struct VoucherCredential<'a> {
    #[serde(rename = "type")]
    #[schema(schema_with = part_schema)]
    kind: &'static str,
    /// The secret value. Treat it like cash.
    value: &'a str,
}

fn part_schema() -> Object {
    let labels = CodePart::VARIANTS.iter().map(|part| part.into_str());
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
        list.serialize_element(&VoucherCredential {
            kind: part.into_str(),
            value,
        })?;
    }
    list.end()
}
