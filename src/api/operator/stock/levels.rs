//! `GET /stock`: stock levels by SKU.

use std::str::FromStr;

use actix_web::{HttpRequest, HttpResponse, web};
use serde::Serialize;
use utoipa::ToSchema;
use vouchsafe_domain::money::{Currency, Money};
use vouchsafe_domain::product::ProductId;

use crate::api::error::ApiError;
use crate::api::middleware::operator::Operator;
use vouchsafe_wire::page::PageRequest;
use crate::service::Service;
use vouchsafe_domain::stock::level::StockLevel;

/// Number of vouchers of a SKU.
#[derive(Serialize, ToSchema)]
#[schema(as = StockLevel)]
pub struct LevelBody {
    /// Product ID.
    product_id: ProductId,
    /// Face value in `currency`.
    denomination: Money,
    /// Currency of `denomination`.
    currency: Currency,
    /// Vouchers ever imported.
    loaded: i64,
    /// Vouchers available for sale.
    free: i64,
    /// Vouchers that belong to orders.
    sold: i64,
    /// Vouchers taken out of sale by operators.
    void: i64,
    /// Vouchers that have expired.
    expired: i64,
    /// Earliest last valid day of the available vouchers.
    #[schema(required, value_type = Option<Date>)]
    next_expiry: Option<String>,
    #[serde(skip)]
    minor: i64,
}

/// `GET /stock`; filter: `product_id`.
pub async fn list_levels(
    service: web::Data<Service>,
    _operator: Operator,
    request: HttpRequest,
) -> Result<HttpResponse, ApiError> {
    let page = PageRequest::parse(request.path(), request.query_string(), &["product_id"])?;
    let after = page.after::<SkuCursor>()?;
    let product_id = page.filter("product_id").map(ToOwned::to_owned);
    let levels = service
        .store
        .stock
        .list_levels(
            product_id,
            after.map(|key| (key.product_id, key.denomination)),
            page.fetch_limit(),
        )
        .await?;
    let catalogue = service.catalogue.current();
    let body = |level: StockLevel| {
        let product = catalogue.get(&level.sku.product_id)?;
        Some(LevelBody::of(level, product.currency))
    };
    let bodies = levels.into_iter().filter_map(body).collect();
    Ok(HttpResponse::Ok().json(page.body(bodies, |level: &LevelBody| {
        format!("{} {}", level.product_id, level.minor)
    })))
}

/// Page position: product and denomination.
struct SkuCursor {
    product_id: String,
    denomination: i64,
}

impl FromStr for SkuCursor {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (product_id, denomination) = text.split_once(' ').ok_or(())?;
        Ok(Self {
            product_id: product_id.to_owned(),
            denomination: denomination.parse().map_err(drop)?,
        })
    }
}

impl LevelBody {
    fn of(level: StockLevel, currency: Currency) -> Self {
        Self {
            minor: level.sku.denomination.minor(),
            denomination: level.sku.denomination.of(currency),
            product_id: level.sku.product_id,
            currency,
            loaded: level.loaded,
            free: level.free,
            sold: level.sold,
            void: level.void,
            expired: level.expired,
            next_expiry: level.next_expiry.map(|day| day.to_string()),
        }
    }
}
