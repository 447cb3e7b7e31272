//! Documented limits of bodies equal the constants that validate: the schema attributes of utoipa take literals alone.

use serde_json::{Value, json};
use utoipa::PartialSchema;
use vouchsafe_domain::catalogue::MAX_LINES;
use vouchsafe_domain::limits::{Limit, MAX_QUOTA, MAX_WINDOW_S};
use vouchsafe_domain::vendor::MAX_CONCURRENCY;
use vouchsafe_security::vault::code::CodePart;

use super::categories::CategoryRequest;
use super::decision::ReasonRequest;
use super::erasure::{ErasureRequest, PartnerErasureRequest};
use super::orders::fulfil::{FulfilRequest, MAX_VOUCHERS, VoucherRequest};
use super::partners::patch::MAX_CANCEL_WINDOW_S;
use super::partners::{NewPartner, PartnerPatch};
use super::payouts::PayoutDecisionRequest;
use super::products::{
    MAX_BRAND, MAX_COUNTRIES, MAX_DENOMINATIONS, MAX_LOW_STOCK_AT, MAX_REDEMPTION_TEXT, MAX_VALIDITY_DAYS,
    ProductRequest, RedemptionRequest,
};
use super::reconciliation::drifts::ResolveRequest;
use super::stock::void::{MAX_CODES, VoidRequest};
use super::text::{MAX_NAME, MAX_REASON, MAX_REFERENCE};
use super::vendors::{MAX_CREDENTIAL, VendorRequest};
use super::wallets::PostingRequest;
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
        (documented::<ReasonRequest>("reason"), MAX_REASON),
        (documented::<ErasureRequest>("reason"), MAX_REASON),
        (documented::<PartnerErasureRequest>("reason"), MAX_REASON),
        (documented::<PayoutDecisionRequest>("reason"), MAX_REASON),
        (documented::<PayoutDecisionRequest>("reference"), MAX_REFERENCE),
        (documented::<ResolveRequest>("reason"), MAX_REASON),
        (documented::<PostingRequest>("reference"), MAX_REFERENCE),
        (documented::<NewPartner>("name"), MAX_NAME),
        (documented::<CategoryRequest>("name"), MAX_NAME),
        (documented::<ProductRequest>("name"), MAX_NAME),
        (documented::<ProductRequest>("brand"), MAX_BRAND),
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
        (documented::<VoidRequest>("reason"), MAX_REASON),
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
