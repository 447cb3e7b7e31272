//! `/stock/quarantine`: quarantine of available stock, comparison with what was sold since a backup, and
//! release.

use actix_web::{HttpResponse, web};
use vouchsafe_domain::product::Sku;
use vouchsafe_store::{ReleaseGround, ReleaseOutcome, SoldVoucher, SoldVoucherOutcome, StockRelease};
use vouchsafe_wire::json::JsonObject;
use vouchsafe_wire::operator::stock::import::parse_amount;
use vouchsafe_wire::operator::stock::quarantine::{
    ComparisonReport, QuarantineCause, QuarantineReport, QuarantineRequest, QuarantinedSku, ReleaseReport,
    ReleaseRequest, SoldRequest, VoucherName,
};

use super::ingest;
use crate::api::error::{ApiError, ApiResult};
use crate::api::middleware::operator::Operator;
use crate::api::operator::OperatorState;
use crate::api::operator::body::Json;
use crate::api::operator::catalogue::product_not_found;

/// `POST /stock/quarantine`.
pub(in crate::api::operator) async fn quarantine(
    service: web::Data<OperatorState>,
    operator: Operator,
    Json(request): Json<QuarantineRequest>,
) -> ApiResult {
    let quarantine = &service.store.quarantine;
    quarantine
        .start(request.reason.into(), operator.audit_actor())
        .await?;
    let report = QuarantineReport {
        stock_quarantined: true,
    };
    Ok(HttpResponse::Ok().json(report))
}

/// `POST /stock/quarantine/sold`.
pub(in crate::api::operator) async fn withdraw_sold(
    service: web::Data<OperatorState>,
    operator: Operator,
    Json(request): Json<SoldRequest>,
) -> ApiResult {
    let names = request.names()?;
    let is_code: Vec<bool> = names
        .iter()
        .map(|name| matches!(name, VoucherName::Code { .. }))
        .collect();
    let sold = names.into_iter().map(|name| sold_voucher(&service, name));
    let sold = sold.collect::<Result<_, ApiError>>()?;
    let quarantine = &service.store.quarantine;
    let outcomes = quarantine.withdraw_sold(sold, request.reason.into(), operator.audit_actor());
    let mut report = ComparisonReport::default();
    for (index, outcome) in outcomes.await?.into_iter().enumerate() {
        match outcome {
            SoldVoucherOutcome::Known => report.known += 1,
            SoldVoucherOutcome::Withdrawn => report.withdrawn += 1,
            SoldVoucherOutcome::Kept => report.kept += 1,
            SoldVoucherOutcome::Absent => {
                report.absent += 1;
                if is_code[index] {
                    report.absent_codes.push(index);
                }
            }
            SoldVoucherOutcome::Unidentified => report.unidentified.push(index),
        }
    }
    Ok(HttpResponse::Ok().json(report))
}

fn sold_voucher(service: &OperatorState, name: VoucherName) -> Result<SoldVoucher, ApiError> {
    Ok(match name {
        VoucherName::Voucher(voucher_id) => SoldVoucher::Voucher(voucher_id),
        VoucherName::CodeRow(code_id, voucher_id) => SoldVoucher::CodeRow(code_id, voucher_id),
        VoucherName::Code { product_id, code } => {
            let catalogue = service.catalogue.current();
            let product = product_id.parse().ok();
            let product = product
                .and_then(|id| catalogue.get(&id))
                .ok_or_else(product_not_found)?;
            SoldVoucher::Code(ingest::code_match(&service.keyring.vault(), product, &code))
        }
    })
}

/// `POST /stock/quarantine/release`.
pub(in crate::api::operator) async fn release(
    service: web::Data<OperatorState>,
    operator: Operator,
    Json(request): Json<ReleaseRequest>,
) -> ApiResult {
    request.check_exceptions()?;
    let kept = request
        .except
        .iter()
        .map(|JsonObject(sku)| parse_sku(&service, sku));
    let kept = kept.collect::<Result<_, ApiError>>()?;
    let ground = match request.after {
        QuarantineCause::Restore => ReleaseGround::Compared,
        QuarantineCause::Failover => ReleaseGround::NothingLost,
    };
    let release = StockRelease {
        ground,
        quarantine: request.quarantine,
        kept,
        reason: request.reason.into(),
    };
    let quarantine = &service.store.quarantine;
    match quarantine.release(release, operator.audit_actor()).await? {
        ReleaseOutcome::Released(part) => Ok(HttpResponse::Ok().json(ReleaseReport {
            released: part.vouchers,
            has_more: part.has_more,
            quarantine: part.quarantine,
            stock_quarantined: part.is_active,
        })),
        ReleaseOutcome::NotCompared => Err(ApiError::invalid_field(
            "after",
            "name the vouchers that were sold since the backup first: POST /stock/quarantine/sold",
        )),
        ReleaseOutcome::AnotherQuarantine => Err(ApiError::invalid_field(
            "quarantine",
            "the stock was quarantined again since: find out why, and begin again",
        )),
    }
}

fn parse_sku(service: &OperatorState, sku: &QuarantinedSku) -> Result<Sku, ApiError> {
    let catalogue = service.catalogue.current();
    let product = sku.product_id.parse().ok();
    let product = product
        .and_then(|id| catalogue.get(&id))
        .ok_or_else(product_not_found)?;
    Ok(Sku {
        product_id: product.product_id.clone(),
        denomination: parse_amount(product, &sku.denomination)?,
    })
}
