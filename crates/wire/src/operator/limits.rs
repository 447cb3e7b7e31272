//! Documented limits of numbers and lists equal the constants that validate: the schema attributes of utoipa
//! take literals alone, and a type for each bound would be a type of its own in generated clients. Texts have
//! types: see `text.rs`.

use serde_json::{Value, json};
use utoipa::PartialSchema;
use vouchsafe_domain::catalogue::MAX_LINES;
use vouchsafe_domain::limits::{Limit, MAX_QUOTA, MAX_WINDOW_S};
use vouchsafe_domain::vendor::MAX_CONCURRENCY;
use vouchsafe_security::vault::code::CodePart;

use super::orders::fulfil::{FulfilRequest, MAX_VOUCHERS, VoucherRequest};
use super::partners::PartnerPatch;
use super::partners::patch::MAX_CANCEL_WINDOW_S;
use super::products::{
    MAX_COUNTRIES, MAX_DENOMINATIONS, MAX_LOW_STOCK_AT, MAX_REDEMPTION_TEXT, MAX_VALIDITY_DAYS,
    ProductRequest, RedemptionRequest,
};
use super::stock::void::{MAX_CODES, VoidRequest};
use super::vendors::{MAX_CREDENTIAL, VendorRequest};
use crate::partner::orders::request::OrderRequest;
use crate::partner::reconciliation::{MAX_DRIFTS, PartnerReconciliation};

/// The largest length, number of items or value of a field.
fn documented<T: PartialSchema>(field: &str) -> Value {
    let schema = json!(T::schema());
    let property = &schema["properties"][field];
    let limits = ["maxLength", "maxItems", "maximum"].map(|limit| &property[limit]);
    limits
        .into_iter()
        .find(|limit| !limit.is_null())
        .cloned()
        .unwrap_or_default()
}

#[test]
fn documented_limits_equal_validated_limits() {
    for (documented, validated) in [
        (documented::<ProductRequest>("countries"), MAX_COUNTRIES),
        (documented::<ProductRequest>("denominations"), MAX_DENOMINATIONS),
        (
            documented::<ProductRequest>("min_validity_days"),
            MAX_VALIDITY_DAYS.into(),
        ),
        (
            documented::<ProductRequest>("low_stock_at"),
            MAX_LOW_STOCK_AT as usize,
        ),
        (
            documented::<RedemptionRequest>("instructions"),
            MAX_REDEMPTION_TEXT,
        ),
        (documented::<RedemptionRequest>("terms"), MAX_REDEMPTION_TEXT),
        (documented::<VendorRequest>("credentials"), MAX_CREDENTIAL),
        (documented::<VendorRequest>("concurrency"), MAX_CONCURRENCY.into()),
        (documented::<VoidRequest>("codes"), MAX_CODES),
        (documented::<FulfilRequest>("vouchers"), MAX_VOUCHERS),
        (documented::<VoucherRequest>("code"), CodePart::Code.max_bytes()),
        (documented::<VoucherRequest>("pin"), CodePart::Pin.max_bytes()),
        (
            documented::<VoucherRequest>("serial"),
            CodePart::Serial.max_bytes(),
        ),
        (documented::<VoucherRequest>("url"), CodePart::Url.max_bytes()),
        (
            documented::<PartnerPatch>("cancel_window_s"),
            MAX_CANCEL_WINDOW_S as usize,
        ),
        (documented::<OrderRequest>("items"), MAX_LINES),
        (documented::<PartnerReconciliation>("drifts"), MAX_DRIFTS),
        (documented::<Limit>("quota"), MAX_QUOTA as usize),
        (documented::<Limit>("window_s"), MAX_WINDOW_S as usize),
    ] {
        assert_eq!(documented, json!(validated));
    }
}
