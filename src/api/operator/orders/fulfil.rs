//! `POST /orders/{order_id}/fulfil`: manual fulfilment of an order with vouchers from an operator.
//!
//! | step | on disk |
//! |---|---|
//! | validate all vouchers and report every error | nothing |
//! | create the order's purchases, if there are none yet | one purchase per line |
//! | store the new vouchers | stock reserved for the order, an audit entry |
//! | deliver it | issued vouchers |
//!
//! A code is stored once, so the call can be repeated. Neither responses nor field errors contain a code.

use std::sync::Arc;

use actix_web::{HttpResponse, web};
use serde::{Deserialize, Serialize};
use uuid::Uuid;
use vouchsafe_actors::flows::{self, ProcureError};
use vouchsafe_actors::ports::vendors::ReservedDelivery;
use vouchsafe_domain::change_request::ChangeKind;
use vouchsafe_domain::ids::{OrderId, PartnerId};
use vouchsafe_domain::money::Money;
use vouchsafe_domain::order::{FulfilmentSource, Order, PendingReason};
use vouchsafe_domain::product::{Product, ProductId, Sku};
use vouchsafe_store::{AuditActor, ImportTarget, StockOrigin};
use vouchsafe_wire::error_code::Code;
use vouchsafe_wire::operator::orders::fulfil::{FulfilReport, FulfilRequest};
use vouchsafe_wire::operator::stock::row::{CODE_CONFLICT, VoucherRow};

use super::{find, find_by_id, order_body};
use crate::api::error::{ApiError, ApiResult};
use crate::api::middleware::operator::Operator;
use crate::api::operator::OperatorState;
use crate::api::operator::body::Json;
use crate::api::operator::change::{Change, ChangeDescription, Execution, submit, to_description};
use crate::api::operator::decision::decision_error;
use crate::api::operator::stock::ingest::{self, CodeState, KnownCodes};
use crate::api::path_id::Id;

/// An order line that needs vouchers, and its purchase.
struct PendingLine {
    line: u16,
    purchase_id: Uuid,
    pending: usize,
}

/// `POST /orders/{order_id}/fulfil`.
pub(in crate::api::operator) async fn fulfil(
    service: web::Data<OperatorState>,
    operator: Operator,
    order_id: Id<OrderId>,
    Json(request): Json<FulfilRequest>,
) -> ApiResult {
    let order = find(&service, &order_id).await?;
    parse_rows(&service, &request, &order)?;
    let order_id = order.order_id;
    let fulfilment = Fulfilment { order_id, request };
    submit(&service, &operator, ChangeKind::OrderFulfil, fulfilment).await
}

/// The product, its SKU and the vouchers of a request.
fn parse_rows(
    service: &OperatorState,
    request: &FulfilRequest,
    order: &Order,
) -> Result<(Arc<Product>, Sku, Vec<VoucherRow>), ApiError> {
    let catalogue = service.catalogue.current();
    let sku = request.resolve_sku(order)?;
    let product = catalogue.get(&sku.product_id).ok_or_else(ApiError::unavailable)?;
    let rows = request.parse_rows(service.clock.now().date(), product, order, &sku)?;
    Ok((Arc::clone(product), sku, rows))
}

/// Vouchers for an order, with their codes.
#[derive(Serialize, Deserialize)]
pub(in crate::api::operator) struct Fulfilment {
    order_id: OrderId,
    request: FulfilRequest,
}

#[derive(Serialize)]
struct Details<'a> {
    partner_id: PartnerId,
    product_id: &'a ProductId,
    denomination: Money,
    vouchers: usize,
}

impl Change for Fulfilment {
    async fn describe(&self, service: &OperatorState) -> Result<ChangeDescription, ApiError> {
        let order = find_by_id(service, self.order_id).await?;
        if !is_waiting_for_vendor(&order) {
            return Err(not_fulfillable(&order));
        }
        let (_, sku, rows) = parse_rows(service, &self.request, &order)?;
        to_description(
            self.order_id,
            order.partner_id,
            &Details {
                partner_id: order.partner_id,
                product_id: &sku.product_id,
                denomination: sku.denomination.of(order.total.currency),
                vouchers: rows.len(),
            },
        )
    }

    async fn carry_out(self, Execution { service, actor, .. }: Execution<'_>) -> ApiResult {
        store_and_deliver(service, self.order_id, &self.request, actor).await
    }
}

async fn store_and_deliver(
    service: &web::Data<OperatorState>,
    order_id: OrderId,
    request: &FulfilRequest,
    actor: AuditActor,
) -> ApiResult {
    let order = find_by_id(service, order_id).await?;
    let (product, sku, rows) = parse_rows(service, request, &order)?;
    let total = rows.len() as u64;
    let new_rows = filter_new(service, &ImportTarget::new(&product, sku.clone()), rows).await?;
    let order = ensure_purchases(service, order).await?;
    let pending_lines = find_pending_lines(service, &order, &sku).await?;
    let pending: usize = pending_lines
        .iter()
        .map(|pending_line| pending_line.pending)
        .sum();
    check_capacity(&order, new_rows.len(), pending)?;
    let imported = store_for_order(service, &product, &order, &sku, new_rows, &pending_lines, &actor).await?;
    for pending_line in &pending_lines {
        deliver(service, &order, pending_line).await?;
    }
    let order = find_by_id(service, order_id).await?;
    Ok(HttpResponse::Ok().json(FulfilReport {
        imported,
        duplicates: total - imported,
        order: order_body(&order)?,
    }))
}

/// Leaves out codes that are stored already, and repetitions.
///
/// # Errors
/// `VALIDATION_FAILED` for the same code with another PIN.
async fn filter_new(
    service: &OperatorState,
    target: &ImportTarget,
    rows: Vec<VoucherRow>,
) -> Result<Vec<VoucherRow>, ApiError> {
    let mut seen = KnownCodes::default();
    let states = ingest::classify(service, target, &rows, &mut seen).await?;
    if let Some(position) = states.iter().position(|state| *state == CodeState::Conflict) {
        return Err(code_conflict(position));
    }
    let states = rows.into_iter().zip(states);
    let new = states.filter(|(_, state)| *state == CodeState::New);
    Ok(new.map(|(row, _)| row).collect())
}

fn code_conflict(position: usize) -> ApiError {
    ApiError::invalid_field(format!("vouchers[{position}]"), CODE_CONFLICT)
}

/// Creates the purchases of an order that was accepted just now, and reads the order again.
async fn ensure_purchases(service: &OperatorState, order: Order) -> Result<Order, ApiError> {
    if !is_waiting_for_vendor(&order) {
        return Ok(order);
    }
    let started = service.procurement.start_order(order.partner_id, order.order_id);
    started.await.map_err(|error| procure_error(&error))?;
    find_by_id(service, order.order_id).await
}

fn is_waiting_for_vendor(order: &Order) -> bool {
    !order.closed && order.pending_reason == Some(PendingReason::Vendor)
}

/// The lines that need this SKU and have an open purchase.
async fn find_pending_lines(
    service: &OperatorState,
    order: &Order,
    sku: &Sku,
) -> Result<Vec<PendingLine>, ApiError> {
    if !is_waiting_for_vendor(order) {
        return Ok(Vec::new());
    }
    let open = service
        .store
        .purchases
        .list_open(order.partner_id, order.order_id)
        .await?;
    let pending_line = |(line, purchase_id): (u16, Uuid)| {
        let order_line = order.lines.get(usize::from(line))?;
        (order_line.sku() == *sku && order_line.pending() > 0).then_some(PendingLine {
            line,
            purchase_id,
            pending: order_line.pending() as usize,
        })
    };
    Ok(open.into_iter().filter_map(pending_line).collect())
}

fn check_capacity(order: &Order, new_rows: usize, pending: usize) -> Result<(), ApiError> {
    if new_rows <= pending {
        return Ok(());
    }
    if pending == 0 {
        return Err(not_fulfillable(order));
    }
    let message = format!("the order needs {pending} vouchers, but {new_rows} are new");
    Err(ApiError::invalid_field("vouchers", message))
}

fn not_fulfillable(order: &Order) -> ApiError {
    let message = format!(
        "order {} does not wait for vouchers from a vendor",
        order.order_id
    );
    ApiError::new(Code::OrderNotFulfillable, message)
}

/// Stores the new vouchers line by line, reserved for the order. Returns their number.
async fn store_for_order(
    service: &web::Data<OperatorState>,
    product: &Product,
    order: &Order,
    sku: &Sku,
    mut new_rows: Vec<VoucherRow>,
    pending_lines: &[PendingLine],
    actor: &AuditActor,
) -> Result<u64, ApiError> {
    let target = ImportTarget::new(product, sku.clone());
    let batch = service
        .store
        .stock
        .open_batch(product.vendor.clone(), order.order_id.to_string())
        .await?;
    let mut stored = 0;
    for pending_line in pending_lines {
        let rest = new_rows.split_off(pending_line.pending.min(new_rows.len()));
        let rows = std::mem::replace(&mut new_rows, rest);
        if rows.is_empty() {
            break;
        }
        let vault = service
            .keyring
            .sealing_vault()
            .await
            .map_err(ingest::keyring_error)?;
        let ids = service.store.stock.generate_ids(rows.len()).await?;
        let origin = StockOrigin::Manual {
            order_id: order.order_id,
            purchase_id: pending_line.purchase_id,
            batch: batch.clone(),
        };
        let target = target.clone();
        let sealed = web::block(move || ingest::seal_batch(&vault, &target, &rows, ids, origin)).await;
        let sealed = sealed
            .map_err(|_| ApiError::unavailable())?
            .map_err(|error| ingest::seal_error(&error))?;
        let summary = ingest::store_batch(service, sealed, actor.clone()).await?;
        // Imported by another call since the check. What is stored stays reserved for the order, and the call
        // can be repeated.
        if let Some(position) = summary.conflicts.first() {
            return Err(code_conflict(*position));
        }
        stored += summary.imported;
    }
    Ok(stored)
}

/// Delivers the vouchers reserved under the line's purchase, and schedules a poll of the purchase, which may
/// end with that.
async fn deliver(service: &OperatorState, order: &Order, pending_line: &PendingLine) -> Result<(), ApiError> {
    service.store.purchases.expedite(pending_line.purchase_id).await?;
    let delivery = ReservedDelivery {
        reservation_id: pending_line.purchase_id,
        source: FulfilmentSource::Vendor,
        partner_id: order.partner_id,
        order_id: order.order_id,
        line: pending_line.line,
    };
    let delivered = flows::deliver_reserved(&service.engine, delivery).await;
    delivered.map(drop).map_err(|error| decision_error(&error))
}

fn procure_error(error: &ProcureError) -> ApiError {
    match error {
        ProcureError::Flow(flow_error) => decision_error(flow_error),
        ProcureError::Unavailable(error) => {
            tracing::warn!(error.message = %error, "cannot start purchases for manual fulfilment");
            ApiError::unavailable()
        }
    }
}
