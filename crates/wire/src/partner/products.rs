//! Response body and filters of `/products`.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use time::OffsetDateTime;
use utoipa::{IntoParams, ToSchema};
use vouchsafe_domain::expiry_policy::ExpiryPolicy;
use vouchsafe_domain::language::{AcceptedLanguages, Language};
use vouchsafe_domain::money::{Amount, Currency, Money};
use vouchsafe_domain::product::content::{BarcodeFormat, Redemption};
use vouchsafe_domain::product::{DenominationRange, Product, ProductId, Sku, SupplyRoute};
use vouchsafe_domain::schema::HttpUrl;
use vouchsafe_domain::stock::FreeVouchers;
use vouchsafe_domain::text_schema::{Country, CountryFilter, CurrencyFilter, FilterText};

use crate::filter::ListFilter;

/// Availability of a product or denomination (contract §3), best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, ToSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[schema(
    description = "Availability as of the last commit: `IN_STOCK`, `LOW_STOCK` (few vouchers left), \
    `ON_DEMAND` (bought from the vendor when ordered), `OUT_OF_STOCK`, `DISCONTINUED` (no longer sold)."
)]
enum Availability {
    InStock,
    LowStock,
    OnDemand,
    OutOfStock,
    Discontinued,
}

/// A product of the catalogue.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Product)]
pub struct ProductBody<'a> {
    /// Identifies the product.
    pub product_id: &'a ProductId,
    /// Name of the product.
    name: &'a str,
    /// Brand that issues the voucher.
    brand: &'a str,
    /// Category of the product.
    category_id: &'a str,
    /// Vendor that supplies the product.
    vendor: &'a str,
    /// Currency of the denominations.
    currency: Currency,
    /// Countries where vouchers can be redeemed (ISO 3166-1 alpha-2). Empty means everywhere.
    #[schema(value_type = Vec<Country>)]
    countries: &'a [String],
    /// Fixed face values, ascending.
    denominations: Vec<Money>,
    /// Range of further face values. Null if only the fixed ones are sold.
    #[schema(required)]
    denomination_range: Option<DenominationRange>,
    /// How long vouchers are valid.
    expiry_policy: &'a ExpiryPolicy,
    /// Availability of the best available denomination.
    availability: Availability,
    /// Language of `description` and `redemption`: the best that `Accept-Language` asks for, else that of the
    /// product.
    pub language: &'a Language,
    /// Languages in which the texts exist, that of the product first.
    languages: Vec<&'a Language>,
    /// What the product is. May be empty.
    description: &'a str,
    /// Redemption instructions and terms for the voucher holder.
    redemption: &'a Redemption,
    /// URLs of images, the most important one first.
    #[schema(value_type = Vec<HttpUrl>)]
    images: &'a [String],
    /// Barcode in which a shop reads the code. Null if the code is typed in.
    #[schema(required)]
    barcode_format: Option<BarcodeFormat>,
    /// Page on which a holder reads the balance of a voucher.
    #[schema(required, value_type = Option<HttpUrl>)]
    balance_check_url: Option<&'a str>,
    /// Support of the brand for voucher holders.
    support: SupportContact<'a>,
    /// When the product was last changed.
    #[serde(with = "vouchsafe_domain::timestamp")]
    updated_at: OffsetDateTime,
    /// Availability of each denomination. Only in `GET /products/{product_id}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    stock: Option<Vec<DenominationStock>>,
}

/// Support of a brand for voucher holders.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = SupportContact)]
struct SupportContact<'a> {
    #[schema(required)]
    email: Option<&'a str>,
    #[schema(required)]
    phone: Option<&'a str>,
    #[schema(required, value_type = Option<HttpUrl>)]
    url: Option<&'a str>,
}

/// Availability of a denomination.
#[derive(Debug, Serialize, ToSchema)]
struct DenominationStock {
    /// Face value.
    denomination: Money,
    /// Availability of this denomination.
    availability: Availability,
}

/// Filter of a product list.
#[derive(Debug, Default, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct ProductFilter {
    /// Filter by currency.
    #[param(value_type = Option<CurrencyFilter>, inline)]
    currency: Option<Currency>,
    /// Filter by country of redemption (ISO 3166-1 alpha-2, for example `US`).
    #[serde(default, deserialize_with = "deserialize_country")]
    #[param(value_type = Option<CountryFilter>, inline)]
    country: Option<String>,
    /// Filter by category.
    #[serde(default, deserialize_with = "deserialize_category_id")]
    #[param(value_type = Option<FilterText>, inline, example = "gaming")]
    category_id: Option<String>,
}

fn deserialize_country<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let country = String::deserialize(deserializer)?;
    if country.len() == 2 && country.bytes().all(|b| b.is_ascii_uppercase()) {
        return Ok(Some(country));
    }
    Err(D::Error::custom("expected two letters such as DE (ISO 3166-1)"))
}

fn deserialize_category_id<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let category_id = String::deserialize(deserializer)?;
    if category_id.is_empty() {
        return Err(D::Error::custom("expected a category id"));
    }
    Ok(Some(category_id))
}

impl ListFilter for ProductFilter {
    const DEFAULT_LIMIT: Option<usize> = Some(100);
}

impl ProductFilter {
    #[must_use]
    pub fn is_match(&self, product: &Product) -> bool {
        let sold_in = |country: &str| {
            product.countries.is_empty() || product.countries.iter().any(|code| code == country)
        };
        self.currency.is_none_or(|currency| product.currency == currency)
            && self
                .category_id
                .as_ref()
                .is_none_or(|id| product.category_id == *id)
            && self.country.as_deref().is_none_or(sold_in)
    }
}

impl<'a> ProductBody<'a> {
    /// A product of the list, without the availability of its denominations.
    #[must_use]
    pub fn of(product: &'a Product, free: &FreeVouchers, accepted: &AcceptedLanguages) -> Self {
        let texts = product.texts(accepted);
        let content = &product.content;
        let best = denominations(product, free)
            .into_iter()
            .map(|d| availability(product, free_count(product, d, free)));
        Self {
            product_id: &product.product_id,
            name: &product.name,
            brand: &product.brand,
            category_id: &product.category_id,
            vendor: &product.vendor,
            currency: product.currency,
            countries: &product.countries,
            denominations: product.denominations.clone(),
            denomination_range: product.denomination_range,
            expiry_policy: &product.expiry_policy,
            availability: best.min().unwrap_or_else(|| availability(product, 0)),
            language: texts.language,
            languages: product.languages().collect(),
            description: texts.description,
            redemption: texts.redemption,
            images: &content.images,
            barcode_format: content.barcode_format,
            balance_check_url: content.balance_check_url.as_deref(),
            support: SupportContact {
                email: content.support_email.as_deref(),
                phone: content.support_phone.as_deref(),
                url: content.support_url.as_deref(),
            },
            updated_at: product.updated_at,
            stock: None,
        }
    }

    /// A product with the availability of its denominations.
    #[must_use]
    pub fn with_stock(product: &'a Product, free: &FreeVouchers, accepted: &AcceptedLanguages) -> Self {
        let stock = denominations(product, free)
            .into_iter()
            .map(|denomination| DenominationStock {
                denomination: denomination.of(product.currency),
                availability: availability(product, free_count(product, denomination, free)),
            });
        Self {
            stock: Some(stock.collect()),
            ..Self::of(product, free, accepted)
        }
    }
}

/// The fixed face values, and those of the range that are in stock, ascending.
fn denominations(product: &Product, free: &FreeVouchers) -> Vec<Amount> {
    let stocked = free
        .keys()
        .filter(|sku| sku.product_id == product.product_id)
        .map(|sku| sku.denomination);
    let listed = product.denominations.iter().map(|money| money.amount);
    let mut all: Vec<Amount> = listed.chain(stocked).collect();
    all.retain(|amount| product.has_denomination(*amount));
    all.sort_unstable();
    all.dedup();
    all
}

fn free_count(product: &Product, denomination: Amount, free: &FreeVouchers) -> u32 {
    let sku = Sku {
        product_id: product.product_id.clone(),
        denomination,
    };
    free.get(&sku).copied().unwrap_or(0)
}

fn availability(product: &Product, free: u32) -> Availability {
    match (product.discontinued, free, product.route) {
        (true, _, _) => Availability::Discontinued,
        (false, 0, SupplyRoute::Vendor) => Availability::OnDemand,
        (false, 0, SupplyRoute::Stock) => Availability::OutOfStock,
        (false, free, _) if free < product.low_stock_at => Availability::LowStock,
        (false, _, _) => Availability::InStock,
    }
}
