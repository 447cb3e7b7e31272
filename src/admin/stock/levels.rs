//! `GET /stock`: the level of each SKU.

use std::str::FromStr;

use actix_web::{HttpRequest, HttpResponse, web};
use serde::Serialize;
use utoipa::ToSchema;
use vouchsafe_actors::domain::money::{Currency, Money};
use vouchsafe_actors::domain::product::ProductId;

use crate::admin::operator::Operator;
use crate::errors::ApiError;
use crate::http::Page;
use crate::service::Service;
use crate::store::StockLevel;

/// How many vouchers of a SKU there are.
#[derive(Serialize, ToSchema)]
#[schema(as = StockLevel)]
pub(in crate::admin) struct LevelBody {
    /// Of which product.
    product_id: ProductId,
    /// At which face value.
    denomination: Money,
    /// Of what.
    currency: Currency,
    /// How many were ever imported.
    loaded: i64,
    /// How many can be sold.
    free: i64,
    /// How many belong to orders.
    sold: i64,
    /// How many were taken out of sale.
    void: i64,
    /// How many can no longer be redeemed.
    expired: i64,
    /// The last valid day of those that expire first.
    #[schema(required, value_type = Option<Date>)]
    next_expiry: Option<String>,
    #[serde(skip)]
    minor: i64,
}

/// `GET /stock`; filter: `product_id`.
pub(in crate::admin) async fn levels(
    service: web::Data<Service>,
    _operator: Operator,
    request: HttpRequest,
) -> Result<HttpResponse, ApiError> {
    let page = Page::read(&request, &["product_id"])?;
    let after = page.after::<SkuKey>()?;
    let product_id = page.filter("product_id").map(ToOwned::to_owned);
    let levels = service
        .store
        .stock_levels(
            product_id,
            after.map(|key| (key.product_id, key.denomination)),
            page.fetch(),
        )
        .await?;
    let catalogue = service.catalogue.now();
    let body = |level: StockLevel| {
        let product = catalogue.get(&level.sku.product_id)?;
        Some(LevelBody::of(level, product.currency))
    };
    let bodies = levels.into_iter().filter_map(body).collect();
    Ok(page.answer(bodies, |level: &LevelBody| {
        format!("{} {}", level.product_id, level.minor)
    }))
}

/// Product and denomination, as the cursor carries them.
struct SkuKey {
    product_id: String,
    denomination: i64,
}

impl FromStr for SkuKey {
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
