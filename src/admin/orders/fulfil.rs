//! `POST /orders/{order_id}/fulfil`: an operator brings in what an order waits for.
//!
//! | step | on disk |
//! |---|---|
//! | the vouchers are read, all faults told at once | nothing |
//! | the order has its purchases, if it had none yet | each line's purchase |
//! | what is new of the vouchers is stored | stock that is kept for the order, an entry in the trail |
//! | it is delivered | vouchers issued |
//!
//! Rule: a code comes in once, so that the same call may be made again; and no code goes out, neither in an answer nor in
//! what is wrong with a field.

use actix_web::{HttpResponse, web};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;
use vouchsafe_actors::domain::catalogue::Catalogue;
use vouchsafe_actors::domain::money::AmountText;
use vouchsafe_actors::domain::order::{Order, OrderLine, PendingReason, Source};
use vouchsafe_actors::domain::product::{Product, Sku};
use vouchsafe_actors::domain::voucher::Expiry;
use vouchsafe_actors::flows::{self, Delivery, Stuck};

use super::{OrderOfPartner, find};
use crate::admin::body::Json;
use crate::admin::decision::undecided;
use crate::admin::operator::{Operator, Role};
use crate::admin::stock::intake;
use crate::admin::stock::rows::{Calendar, Row, Texts};
use crate::errors::{ApiError, Code, Detail};
use crate::json::{Object, SecretText};
use crate::service::Service;
use crate::store::{By, Imported, Origin};
use crate::vault::code::CodeParts;
use crate::vendor::expiry::last_valid_day;

/// Most vouchers of a call: as many as an order may have.
const MAX_VOUCHERS: usize = 1_000;

/// What an order waits for.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::admin) struct FulfilRequest {
    /// Of which product they are. It and `denomination` may be left out where the order waits for one SKU alone.
    #[serde(default)]
    product_id: Option<String>,
    /// At which face value.
    #[serde(default)]
    denomination: Option<AmountText>,
    /// They: no more new ones than the order waits for.
    #[schema(value_type = Vec<VoucherRequest>, min_items = 1, max_items = 1_000)]
    vouchers: Vec<Object<VoucherRequest>>,
}

/// A voucher, with the names of an import's columns.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct VoucherRequest {
    /// What is redeemed.
    #[schema(value_type = String, min_length = 1, max_length = 512, write_only)]
    code: SecretText,
    /// Asked for beside the code.
    #[serde(default)]
    #[schema(value_type = Option<String>, max_length = 128, write_only)]
    pin: Option<SecretText>,
    /// Printed on the card.
    #[serde(default)]
    #[schema(value_type = Option<String>, max_length = 128, write_only)]
    serial: Option<SecretText>,
    /// Where it is redeemed.
    #[serde(default)]
    #[schema(value_type = Option<String>, max_length = 2_048, write_only)]
    url: Option<SecretText>,
    /// Its last valid day, as `YYYY-MM-DD`; by the product's expiry policy where it is left out.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    expiry: Option<SecretText>,
}

/// What came of it.
#[derive(Serialize, ToSchema)]
#[schema(as = FulfilReport)]
pub(in crate::admin) struct Fulfilled<'a> {
    /// Vouchers that are new.
    imported: u64,
    /// Vouchers that were there before, for this order or for anything else.
    duplicates: u64,
    /// The order since.
    #[schema(inline = false)]
    order: OrderOfPartner<'a>,
}

/// Where vouchers go: a line that waits, and its purchase.
struct Place {
    line: u16,
    purchase_id: Uuid,
    room: usize,
}

/// `POST /orders/{order_id}/fulfil`.
pub(in crate::admin) async fn fulfil(
    service: web::Data<Service>,
    operator: Operator,
    order_id: web::Path<String>,
    Json(request): Json<FulfilRequest>,
) -> Result<HttpResponse, ApiError> {
    let by = operator.may(Role::Operator)?;
    let order = find(&service, &order_id).await?;
    let catalogue = service.catalogue.now();
    let (product, sku) = request.sku(&order, &catalogue)?;
    let rows = request.rows(&service, product, &order, &sku)?;
    let given = rows.len() as u64;
    let fresh = fresh(&service, product, rows).await?;
    let order = taken_up(&service, order).await?;
    let places = places(&service, &order, &sku).await?;
    let room: usize = places.iter().map(|place| place.room).sum();
    check_room(&order, fresh.len(), room)?;
    let imported = store(&service, product, &order, &sku, fresh, &places, &by).await?;
    for place in &places {
        deliver(&service, &order, place).await?;
    }
    let order = find(&service, &order_id).await?;
    Ok(HttpResponse::Ok().json(Fulfilled {
        imported,
        duplicates: given - imported,
        order: OrderOfPartner::of(&order)?,
    }))
}

impl FulfilRequest {
    /// Which SKU of the order.
    fn sku<'a>(&self, order: &Order, catalogue: &'a Catalogue) -> Result<(&'a Product, Sku), ApiError> {
        let named = |line: &&OrderLine| match (&self.product_id, &self.denomination) {
            (None, None) => true,
            (Some(product_id), Some(denomination)) => {
                let face = denomination.parse(order.total.currency);
                line.product_id.as_str() == product_id && face.is_ok_and(|face| face == line.denomination)
            }
            _ => false,
        };
        if self.product_id.is_some() != self.denomination.is_some() {
            return Err(ApiError::invalid(
                "product_id",
                "name product_id and denomination, or neither of them",
            ));
        }
        let mut skus: Vec<Sku> = order.lines.iter().filter(named).map(OrderLine::sku).collect();
        skus.sort();
        skus.dedup();
        let [sku] = &skus[..] else {
            let message = if skus.is_empty() {
                "the order has no item of this product and denomination"
            } else {
                "the order has several; name product_id and denomination"
            };
            return Err(ApiError::invalid("product_id", message));
        };
        let product = catalogue.get(&sku.product_id).ok_or_else(ApiError::unavailable)?;
        Ok((product, sku.clone()))
    }

    /// The vouchers, or everything that is wrong with them.
    fn rows(
        &self,
        service: &Service,
        product: &Product,
        order: &Order,
        sku: &Sku,
    ) -> Result<Vec<Row>, ApiError> {
        if !(1..=MAX_VOUCHERS).contains(&self.vouchers.len()) {
            let message = format!("expected 1 to {MAX_VOUCHERS}");
            return Err(ApiError::invalid("vouchers", message));
        }
        let today = service.clock.now().date();
        let calendar = Calendar {
            today,
            otherwise: last_valid_day(&product.expiry_policy, today),
        };
        let of_sku = order.lines.iter().filter(|line| line.sku() == *sku);
        let days = of_sku
            .map(|line| line.min_validity_days)
            .max()
            .unwrap_or_default();
        let not_before = Expiry::leaving(today, u16::try_from(days).unwrap_or(u16::MAX));
        let (mut rows, mut faults) = (Vec::with_capacity(self.vouchers.len()), Vec::new());
        for (index, Object(voucher)) in self.vouchers.iter().enumerate() {
            let mut fault = |message: String| {
                faults.push(Detail {
                    field: format!("vouchers[{index}]"),
                    message,
                });
            };
            match calendar.row(&voucher.texts()) {
                Ok(row) if Expiry::from_date(row.expiry) < not_before => {
                    fault(format!("must be valid for {days} days at least for this order"));
                }
                Ok(row) => rows.push(row),
                Err(reason) => fault(reason.to_string()),
            }
        }
        if faults.is_empty() {
            Ok(rows)
        } else {
            Err(ApiError::invalid_fields(faults))
        }
    }
}

impl VoucherRequest {
    fn texts(&self) -> Texts<'_> {
        let texts = [&self.pin, &self.serial, &self.url, &self.expiry];
        let [pin, serial, url, expiry] = texts.map(|text| text.as_ref().map(SecretText::expose));
        Texts {
            parts: CodeParts {
                code: self.code.expose(),
                pin,
                serial,
                url,
            },
            expiry,
        }
    }
}

/// Those that were never taken in, each once.
async fn fresh(service: &Service, product: &Product, rows: Vec<Row>) -> Result<Vec<Row>, ApiError> {
    let vault = service.keyring.vault();
    let indexes: Vec<_> = rows
        .iter()
        .map(|row| vault.blind_index(&product.brand, &row.code))
        .collect();
    let mut seen = service.store.known_codes(indexes.clone()).await?;
    let fresh = rows.into_iter().zip(indexes);
    Ok(fresh
        .filter_map(|(row, index)| seen.insert(index).then_some(row))
        .collect())
}

/// The order since it was taken up: one that was accepted just now gets its purchases here.
async fn taken_up(service: &Service, order: Order) -> Result<Order, ApiError> {
    if !waits(&order) {
        return Ok(order);
    }
    let settled = service.procurement.take_up(order.partner_id, order.order_id);
    settled.await.map_err(|stuck| unmoved(&stuck))?;
    find(service, &order.order_id.to_string()).await
}

fn waits(order: &Order) -> bool {
    !order.closed && order.pending_reason == Some(PendingReason::Vendor)
}

/// The lines that wait for this SKU and are bought for.
async fn places(service: &Service, order: &Order, sku: &Sku) -> Result<Vec<Place>, ApiError> {
    if !waits(order) {
        return Ok(Vec::new());
    }
    let open = service
        .store
        .open_purchases_of(order.partner_id, order.order_id)
        .await?;
    let place = |(line, purchase_id): (u16, Uuid)| {
        let waits = order.lines.get(usize::from(line))?;
        (waits.sku() == *sku && waits.pending() > 0).then_some(Place {
            line,
            purchase_id,
            room: waits.pending() as usize,
        })
    };
    Ok(open.into_iter().filter_map(place).collect())
}

fn check_room(order: &Order, fresh: usize, room: usize) -> Result<(), ApiError> {
    if fresh <= room {
        return Ok(());
    }
    if room == 0 {
        let message = format!(
            "order {} waits for no vouchers that are bought for it",
            order.order_id
        );
        return Err(ApiError::new(Code::OrderNotFulfillable, message));
    }
    let message = format!("the order waits for {room} of it, and {fresh} are new");
    Err(ApiError::invalid("vouchers", message))
}

/// Stores what is new, line by line, kept for the order; says how many that were.
async fn store(
    service: &web::Data<Service>,
    product: &Product,
    order: &Order,
    sku: &Sku,
    mut fresh: Vec<Row>,
    places: &[Place],
    by: &By,
) -> Result<u64, ApiError> {
    let target = intake::target(product, sku.clone());
    let mut stored = 0;
    for place in places {
        let rest = fresh.split_off(place.room.min(fresh.len()));
        let rows = std::mem::replace(&mut fresh, rest);
        if rows.is_empty() {
            break;
        }
        let vault = service.keyring.sealing().await.map_err(intake::locked)?;
        let ids = service.store.take_stock_ids(rows.len()).await?;
        let target = target.clone();
        let sealed = web::block(move || intake::seal(&vault, &target, &rows, ids)).await;
        let mut batch = sealed
            .map_err(|_| ApiError::unavailable())?
            .map_err(|error| intake::unsealed(&error))?;
        batch.origin = Origin::ByHand {
            order_id: order.order_id,
            purchase_id: place.purchase_id,
        };
        let Imported { imported, .. } = intake::store(service, batch, by.clone()).await?;
        stored += imported;
    }
    Ok(stored)
}

/// Delivers what is kept under the purchase of a line, and lets the purchase be looked at: it may be over with that.
async fn deliver(service: &Service, order: &Order, place: &Place) -> Result<(), ApiError> {
    service.store.hurry_purchase(place.purchase_id).await?;
    let delivery = Delivery {
        kept_id: place.purchase_id,
        source: Source::Vendor,
        partner_id: order.partner_id,
        order_id: order.order_id,
        line: place.line,
    };
    let delivered = flows::deliver(&service.engine, delivery).await;
    delivered.map(drop).map_err(|error| undecided(&error))
}

fn unmoved(stuck: &Stuck) -> ApiError {
    match stuck {
        Stuck::Unanswered(unanswered) => undecided(unanswered),
        Stuck::Unavailable(error) => {
            tracing::warn!(%error, "an order cannot be taken up to be fulfilled by hand");
            ApiError::unavailable()
        }
    }
}
