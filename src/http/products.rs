//! `/products`: what can be ordered, and how much of it is there.

use actix_web::{HttpRequest, HttpResponse, web};
use serde::Serialize;
use time::OffsetDateTime;
use utoipa::ToSchema;
use vouchsafe_actors::domain::money::{Amount, Currency, Money};
use vouchsafe_actors::domain::product::{ExpiryPolicy, Product, ProductId, Redemption, Route, Sku};

use super::caller::Caller;
use super::etag;
use super::list::Page;
use crate::errors::{ApiError, Code};
use crate::service::Service;
use crate::store::FreeVouchers;

/// How well a product or a denomination can be had (contract §3), best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, ToSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[schema(
    description = "How well it can be had, as of the last commit: `IN_STOCK`, `LOW_STOCK` (few are left), \
    `ON_DEMAND` (it is bought from the vendor when ordered), `OUT_OF_STOCK`, `DISCONTINUED` (no longer sold)."
)]
enum Availability {
    InStock,
    LowStock,
    OnDemand,
    OutOfStock,
    Discontinued,
}

/// What can be ordered.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Product)]
pub(super) struct ProductBody<'a> {
    /// Its id.
    product_id: &'a ProductId,
    /// What it is called.
    name: &'a str,
    /// Whose voucher it is.
    brand: &'a str,
    /// The category it is in.
    category_id: &'a str,
    /// The vendor it comes from.
    vendor: &'a str,
    /// What its denominations are counted in.
    currency: Currency,
    /// ISO 3166 codes of where it can be redeemed; empty is everywhere.
    countries: &'a [String],
    /// Listed face values, ascending.
    denominations: Vec<Money>,
    /// Face values beside the listed ones.
    #[schema(required)]
    denomination_range: Option<RangeBody>,
    /// How long a voucher is good for.
    expiry_policy: &'a ExpiryPolicy,
    /// That of its best denomination.
    availability: Availability,
    /// What the holder of a voucher is told.
    redemption: &'a Redemption,
    /// When an operator last changed it.
    #[serde(with = "vouchsafe_actors::domain::moment")]
    updated_at: OffsetDateTime,
    /// The availability of each denomination; of a single product alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    stock: Option<Vec<StockBody>>,
}

/// Face values between two bounds, in equal steps.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = DenominationRange)]
struct RangeBody {
    /// The least.
    min: Money,
    /// The most.
    max: Money,
    /// From one to the next, counted from `min`.
    step: Money,
}

/// How well a denomination can be had.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = DenominationStock)]
struct StockBody {
    /// The face value.
    denomination: Money,
    /// How well it can be had.
    availability: Availability,
}

/// `GET /products`; filters: `currency`, `country`, `category_id`.
///
/// # Errors
/// `VALIDATION_FAILED` and `INVALID_CURSOR`.
pub async fn list(
    service: web::Data<Service>,
    caller: Caller,
    request: HttpRequest,
) -> Result<HttpResponse, ApiError> {
    let page = Page::read(&request, &["currency", "country", "category_id"])?;
    let assortment = service.catalogue.of(&caller.partner);
    let wanted = Wanted::read(&page)?;
    let mut products: Vec<&Product> = assortment
        .products()
        .filter(|product| wanted.is(product))
        .collect();
    products.sort_by(|a, b| a.product_id.cmp(&b.product_id));
    if let Some(after) = page.after::<ProductId>()? {
        products.retain(|product| product.product_id > after);
    }
    products.truncate(page.fetch());
    let free = service.store.free_vouchers(&products).await?;
    let bodies = products
        .into_iter()
        .map(|product| ProductBody::of(product, &free))
        .collect();
    let envelope = page.envelope(bodies, |body: &ProductBody<'_>| body.product_id.to_string());
    etag::answer(&request, &envelope)
}

/// What a list of products is narrowed to.
struct Wanted<'a> {
    currency: Option<Currency>,
    country: Option<&'a str>,
    category_id: Option<&'a str>,
}

impl<'a> Wanted<'a> {
    fn read(page: &'a Page) -> Result<Self, ApiError> {
        let currency: Result<Option<Currency>, _> = page.filter("currency").map(str::parse).transpose();
        let country = page.filter("country");
        let is_country = |code: &str| code.len() == 2 && code.bytes().all(|b| b.is_ascii_uppercase());
        if !country.is_none_or(is_country) {
            let message = "expected two capital letters, as DE (ISO 3166-1)";
            return Err(ApiError::invalid("country", message));
        }
        let category_id = page.filter("category_id");
        if category_id.is_some_and(str::is_empty) {
            return Err(ApiError::invalid("category_id", "expected a category's id"));
        }
        Ok(Self {
            currency: currency.map_err(|error| ApiError::invalid("currency", error.to_string()))?,
            country,
            category_id,
        })
    }

    fn is(&self, product: &Product) -> bool {
        let sold_in = |country: &str| {
            product.countries.is_empty() || product.countries.iter().any(|code| code == country)
        };
        self.currency.is_none_or(|currency| product.currency == currency)
            && self.category_id.is_none_or(|id| product.category_id == id)
            && self.country.is_none_or(sold_in)
    }
}

/// `GET /products/{product_id}`.
///
/// # Errors
/// `PRODUCT_NOT_FOUND`.
pub async fn get(
    service: web::Data<Service>,
    caller: Caller,
    product_id: web::Path<String>,
    request: HttpRequest,
) -> Result<HttpResponse, ApiError> {
    let not_found = || {
        ApiError::new(
            Code::ProductNotFound,
            "there is no such product; GET /products lists them",
        )
    };
    let product_id = product_id.parse().map_err(|_| not_found())?;
    let assortment = service.catalogue.of(&caller.partner);
    let product = assortment.get(&product_id).ok_or_else(not_found)?;
    let free = service.store.free_vouchers(&[product]).await?;
    let stock = denominations(product, &free)
        .into_iter()
        .map(|denomination| StockBody {
            denomination: denomination.of(product.currency),
            availability: availability(product, free_of(product, denomination, &free)),
        });
    let body = ProductBody {
        stock: Some(stock.collect()),
        ..ProductBody::of(product, &free)
    };
    etag::answer(&request, &body)
}

impl<'a> ProductBody<'a> {
    fn of(product: &'a Product, free: &FreeVouchers) -> Self {
        let currency = product.currency;
        let best = denominations(product, free)
            .into_iter()
            .map(|d| availability(product, free_of(product, d, free)));
        Self {
            product_id: &product.product_id,
            name: &product.name,
            brand: &product.brand,
            category_id: &product.category_id,
            vendor: &product.vendor,
            currency,
            countries: &product.countries,
            denominations: product
                .denominations
                .iter()
                .map(|amount| amount.of(currency))
                .collect(),
            denomination_range: product.denomination_range.map(|range| RangeBody {
                min: range.min.of(currency),
                max: range.max.of(currency),
                step: range.step.of(currency),
            }),
            expiry_policy: &product.expiry_policy,
            availability: best.min().unwrap_or_else(|| availability(product, 0)),
            redemption: &product.redemption,
            updated_at: product.updated_at,
            stock: None,
        }
    }
}

/// The listed face values, and those of the range of which something is in stock.
fn denominations(product: &Product, free: &FreeVouchers) -> Vec<Amount> {
    let stocked = free
        .keys()
        .filter(|sku| sku.product_id == product.product_id)
        .map(|sku| sku.denomination);
    let mut all: Vec<Amount> = product.denominations.iter().copied().chain(stocked).collect();
    all.retain(|amount| product.offers(*amount));
    all.sort_unstable();
    all.dedup();
    all
}

fn free_of(product: &Product, denomination: Amount, free: &FreeVouchers) -> u32 {
    let sku = Sku {
        product_id: product.product_id.clone(),
        denomination,
    };
    free.get(&sku).copied().unwrap_or(0)
}

fn availability(product: &Product, free: u32) -> Availability {
    match (product.discontinued, free, product.route) {
        (true, _, _) => Availability::Discontinued,
        (false, 0, Route::Vendor) => Availability::OnDemand,
        (false, 0, Route::Stock) => Availability::OutOfStock,
        (false, free, _) if free < product.low_stock_at => Availability::LowStock,
        (false, _, _) => Availability::InStock,
    }
}
