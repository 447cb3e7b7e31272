//! `/drifts`: where a vendor's books and ours differ, and what operators say of it.

use actix_web::{HttpRequest, HttpResponse, web};
use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use utoipa::ToSchema;
use vouchsafe_actors::domain::ids::{DriftId, OrderId, PartnerId, VoucherId};
use vouchsafe_actors::domain::money::{Currency, Money};
use vouchsafe_actors::domain::product::ProductId;

use crate::admin::body::Json;
use crate::admin::decision::reason;
use crate::admin::operator::{Operator, Role};
use crate::errors::{ApiError, Code};
use crate::http::Page;
use crate::http::reconciliation::read_date;
use crate::json;
use crate::reconciliation::{Kind, Said};
use crate::service::Service;
use crate::store::{Drift, DriftFilter, Resolution, Resolved};
use crate::vendor::PurchaseKey;

/// What drifts are listed by.
const FILTERS: [&str; 4] = ["date", "vendor", "kind", "resolution"];

/// A place where a vendor's books and ours differ.
#[derive(Serialize, ToSchema)]
#[schema(as = Drift)]
pub(in crate::admin) struct DriftBody {
    /// Its id: the same for as long as both sides say the same.
    drift_id: DriftId,
    /// Which day, in UTC.
    #[schema(format = Date)]
    date: String,
    /// With whom.
    vendor: String,
    /// `MISSING`: the vendor's books lack it. `UNKNOWN`: we do not have it. `DIFFERS`: both have it, and say different
    /// things of it. `REPEATED`: the books have it on an earlier day, too.
    #[schema(value_type = String, example = "DIFFERS")]
    kind: &'static str,
    /// What both sides say different things of.
    differences: Vec<&'static str>,
    /// The partner whose order the voucher was bought for; null where no purchase of ours is named.
    #[schema(required)]
    partner_id: Option<PartnerId>,
    /// That order.
    #[schema(required)]
    order_id: Option<OrderId>,
    /// The voucher as that order holds it; null where it does not.
    #[schema(required)]
    our_allocation: Option<VoucherId>,
    /// The vendor's name of the voucher. Never a code.
    vendor_record: String,
    /// What we say of it; null where we have none.
    #[schema(required)]
    ours: Option<SaidBody>,
    /// What the vendor says of it; null where its books lack it.
    #[schema(required)]
    theirs: Option<SaidBody>,
    /// When it was found.
    #[serde(with = "vouchsafe_actors::domain::moment")]
    detected_at: OffsetDateTime,
    /// What was said of it.
    resolution: Resolution,
    /// Why.
    #[schema(required)]
    reason: Option<String>,
    /// When.
    #[serde(with = "vouchsafe_actors::domain::moment::option")]
    #[schema(required)]
    resolved_at: Option<OffsetDateTime>,
}

/// What a side says of a voucher.
#[derive(Serialize, ToSchema)]
#[schema(as = DriftSide)]
struct SaidBody {
    /// Under which key it was bought; null where the side does not say.
    #[schema(required, value_type = Option<String>)]
    purchase_id: Option<PurchaseKey>,
    /// Which product.
    product_id: ProductId,
    /// At which face value.
    denomination: Money,
    /// Of what.
    currency: Currency,
}

/// What is said of a drift.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::admin) struct ResolveRequest {
    /// `resolved` or `escalated`.
    #[serde(deserialize_with = "json::word")]
    resolution: Resolution,
    /// Why; kept in the trail.
    #[schema(min_length = 1, max_length = 500)]
    reason: String,
}

/// `GET /drifts`; filters: `date`, `vendor`, `kind`, `resolution`.
pub(in crate::admin) async fn list(
    service: web::Data<Service>,
    _operator: Operator,
    request: HttpRequest,
) -> Result<HttpResponse, ApiError> {
    let page = Page::read(&request, &FILTERS)?;
    let wanted = DriftFilter {
        day: page.filter("date").map(read_date).transpose()?,
        vendor: page.filter("vendor").map(str::to_owned),
        kind: page.one_of("kind", &Kind::ALL, Kind::as_str)?,
        resolution: page.one_of("resolution", &Resolution::ALL, Resolution::as_str)?,
    };
    let found = service
        .store
        .list_drifts(wanted, page.after()?, page.fetch())
        .await?;
    let bodies = found.into_iter().map(DriftBody::from).collect();
    Ok(page.answer(bodies, |body: &DriftBody| body.drift_id.to_string()))
}

/// `POST /drifts/{drift_id}/resolve`. What was said may be said otherwise later; the trail has all of it.
pub(in crate::admin) async fn resolve(
    service: web::Data<Service>,
    operator: Operator,
    drift_id: web::Path<String>,
    Json(request): Json<ResolveRequest>,
) -> Result<HttpResponse, ApiError> {
    let by = operator.may(Role::Operator)?;
    if request.resolution == Resolution::Pending {
        return Err(ApiError::invalid(
            "resolution",
            "expected `resolved` or `escalated`",
        ));
    }
    let resolved = Resolved {
        drift_id: drift_id.parse().map_err(|_| no_drift())?,
        resolution: request.resolution,
        reason: reason(&request.reason)?,
    };
    let drift = service.store.resolve_drift(resolved, by).await?;
    Ok(HttpResponse::Ok().json(DriftBody::from(drift.ok_or_else(no_drift)?)))
}

fn no_drift() -> ApiError {
    ApiError::new(Code::DriftNotFound, "there is no such drift")
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
            ours: drift.ours.map(SaidBody::from),
            theirs: drift.theirs.map(SaidBody::from),
            detected_at: drift.detected_at,
            resolution: drift.resolution,
            reason: drift.reason,
            resolved_at: drift.resolved_at,
        }
    }
}

impl From<Said> for SaidBody {
    fn from(said: Said) -> Self {
        Self {
            purchase_id: said.purchase,
            product_id: said.product_id,
            denomination: said.denomination,
            currency: said.denomination.currency,
        }
    }
}
