//! `/drifts`: differences between a vendor's records and our purchases, and their resolution.

use actix_web::{HttpRequest, HttpResponse, web};
use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use utoipa::ToSchema;
use vouchsafe_domain::ids::{DriftId, OrderId, PartnerId, VoucherId};
use vouchsafe_domain::money::{Currency, Money};
use vouchsafe_domain::product::ProductId;

use crate::api::error::ApiError;
use crate::api::middleware::operator::{Operator, Role};
use crate::api::operator::body::Json;
use crate::api::operator::decision::validate_reason;
use vouchsafe_wire::page::PageRequest;
use vouchsafe_wire::partner::reconciliation::parse_date;
use crate::service::Service;
use vouchsafe_domain::reconciliation::drift::{Drift, DriftFilter, DriftResolution, ResolveDriftRequest};
use vouchsafe_domain::purchase::PurchaseKey;
use vouchsafe_domain::reconciliation::{DriftKind, VoucherTerms};
use vouchsafe_wire::error_code::Code;
use vouchsafe_wire::json;

const FILTERS: [&str; 4] = ["date", "vendor", "kind", "resolution"];

/// A difference between a vendor's records and our purchases.
#[derive(Serialize, ToSchema)]
#[schema(as = Drift)]
pub struct DriftBody {
    /// Drift ID: stable as long as the values on both sides do not change.
    drift_id: DriftId,
    /// Day in UTC.
    #[schema(format = Date)]
    date: String,
    /// Vendor ID.
    vendor: String,
    /// `MISSING`: the vendor has no record of our voucher. `UNKNOWN`: we have no voucher for the record. `DIFFERS`: the two
    /// differ. `REPEATED`: the vendor also recorded the voucher on an earlier day.
    #[schema(value_type = String, example = "DIFFERS")]
    kind: &'static str,
    /// Names of the fields that differ.
    differences: Vec<&'static str>,
    /// Partner whose order the voucher was bought for; null without a purchase.
    #[schema(required)]
    partner_id: Option<PartnerId>,
    /// Order the voucher was bought for; null without a purchase.
    #[schema(required)]
    order_id: Option<OrderId>,
    /// Voucher ID in that order; null if the order does not have it.
    #[schema(required)]
    our_allocation: Option<VoucherId>,
    /// The vendor's reference of the voucher, never a code.
    vendor_record: String,
    /// Our voucher; null if we have none.
    #[schema(required)]
    ours: Option<DriftSideBody>,
    /// The vendor's record; null if it has none.
    #[schema(required)]
    theirs: Option<DriftSideBody>,
    /// Time at which the drift was detected.
    #[serde(with = "vouchsafe_domain::timestamp")]
    detected_at: OffsetDateTime,
    /// Resolution.
    resolution: DriftResolution,
    /// Reason of the resolution.
    #[schema(required)]
    reason: Option<String>,
    /// Time of the resolution.
    #[serde(with = "vouchsafe_domain::timestamp::option")]
    #[schema(required)]
    resolved_at: Option<OffsetDateTime>,
}

/// A voucher according to one side.
#[derive(Serialize, ToSchema)]
#[schema(as = DriftSide)]
struct DriftSideBody {
    /// Purchase ID; null if the side does not state it.
    #[schema(required, value_type = Option<String>)]
    purchase_id: Option<PurchaseKey>,
    /// Product ID.
    product_id: ProductId,
    /// Face value in `currency`.
    denomination: Money,
    /// Currency of `denomination`.
    currency: Currency,
}

/// Resolution of a drift.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ResolveRequest {
    /// `resolved`, or `escalated` to the vendor.
    #[serde(deserialize_with = "json::enum_value")]
    resolution: DriftResolution,
    /// Reason, written to the audit trail.
    #[schema(min_length = 1, max_length = 500)]
    reason: String,
}

/// `GET /drifts`; filters: `date`, `vendor`, `kind`, `resolution`.
pub(in crate::api::operator) async fn list(
    service: web::Data<Service>,
    _operator: Operator,
    request: HttpRequest,
) -> Result<HttpResponse, ApiError> {
    let page = PageRequest::parse(request.path(), request.query_string(), &FILTERS)?;
    let filter = DriftFilter {
        day: page.filter("date").map(parse_date).transpose()?,
        vendor: page.filter("vendor").map(str::to_owned),
        kind: page.enum_filter("kind", &DriftKind::ALL, DriftKind::as_str)?,
        resolution: page.enum_filter("resolution", &DriftResolution::ALL, DriftResolution::as_str)?,
    };
    let drifts = service
        .store
        .drifts
        .list(filter, page.after()?, page.fetch_limit())
        .await?;
    let bodies = drifts.into_iter().map(DriftBody::from).collect();
    Ok(HttpResponse::Ok().json(page.body(bodies, |body: &DriftBody| body.drift_id.to_string())))
}

/// `POST /drifts/{drift_id}/resolve`. A later call may change the resolution.
pub(in crate::api::operator) async fn resolve(
    service: web::Data<Service>,
    operator: Operator,
    drift_id: web::Path<String>,
    Json(request): Json<ResolveRequest>,
) -> Result<HttpResponse, ApiError> {
    let actor = operator.authorize(Role::Operator)?;
    if request.resolution == DriftResolution::Pending {
        return Err(ApiError::invalid_field(
            "resolution",
            "expected `resolved` or `escalated`",
        ));
    }
    let resolve_request = ResolveDriftRequest {
        drift_id: drift_id.parse().map_err(|_| drift_not_found())?,
        resolution: request.resolution,
        reason: validate_reason(&request.reason)?,
    };
    let drift = service.store.drifts.resolve(resolve_request, actor).await?;
    Ok(HttpResponse::Ok().json(DriftBody::from(drift.ok_or_else(drift_not_found)?)))
}

fn drift_not_found() -> ApiError {
    ApiError::new(Code::DriftNotFound, "no such drift")
}

impl From<Drift> for DriftBody {
    fn from(drift: Drift) -> Self {
        let sides = drift.ours.as_ref().zip(drift.theirs.as_ref());
        let (partner_id, order_id) = drift.order.unzip();
        Self {
            drift_id: drift.drift_id,
            date: drift.day.to_string(),
            vendor: drift.vendor,
            kind: drift.kind.as_str(),
            differences: sides
                .map(|(ours, theirs)| ours.differences(theirs))
                .unwrap_or_default(),
            partner_id,
            order_id,
            our_allocation: drift.voucher_id,
            vendor_record: drift.reference,
            ours: drift.ours.map(DriftSideBody::from),
            theirs: drift.theirs.map(DriftSideBody::from),
            detected_at: drift.detected_at,
            resolution: drift.resolution,
            reason: drift.reason,
            resolved_at: drift.resolved_at,
        }
    }
}

impl From<VoucherTerms> for DriftSideBody {
    fn from(terms: VoucherTerms) -> Self {
        Self {
            purchase_id: terms.purchase,
            product_id: terms.product_id,
            denomination: terms.denomination,
            currency: terms.denomination.currency,
        }
    }
}
