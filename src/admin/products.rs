//! From what an operator says of a product to a product: every field checked, all faults told at once.

use serde::Deserialize;
use time::OffsetDateTime;
use utoipa::ToSchema;
use vouchsafe_actors::domain::money::{Amount, AmountText, Currency};
use vouchsafe_actors::domain::product::{
    Approval, DenominationRange, ExpiryKind, ExpiryPolicy, Product, ProductId, Redemption, Route, check_slug,
};
use vouchsafe_actors::domain::schema::expiry_value;

use super::body;
use crate::day;
use crate::errors::{ApiError, Detail};
use crate::json::{self, Object};

/// Most listed face values of a product: a page that people choose from. More lie on a range.
const MAX_DENOMINATIONS: usize = 200;

/// Most countries of a product: more than there are.
const MAX_COUNTRIES: usize = 300;

/// Longest brand, in characters.
const MAX_BRAND: usize = 100;

/// Longest instructions and terms, in characters: a few printed pages.
const MAX_PROSE: usize = 20_000;

/// Longest validity that is believed. Months: a century.
const MAX_MONTHS: u64 = 1_200;

/// Most days that may have to be left: ten years.
const MAX_VALIDITY_DAYS: u16 = 3_650;

/// Below how many vouchers the availability reads `LOW_STOCK`, unless the operator says so.
const DEFAULT_LOW_STOCK_AT: u32 = 20;

/// Largest `low_stock_at`: availability counts up to it.
const MAX_LOW_STOCK_AT: u32 = 100_000;

/// Largest face value, in minor units: 1,000 vouchers of it, the most in an order, are far from what can be counted.
const MAX_DENOMINATION: i64 = 1_000_000_000_000;

/// What a product is to be.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ProductRequest)]
pub(super) struct PutRequest {
    /// What it is called.
    #[schema(min_length = 1, max_length = 200)]
    name: String,
    /// Whose voucher it is; codes are unique within a brand.
    #[schema(min_length = 1, max_length = 100)]
    brand: String,
    /// The category it is in, which must be there.
    category_id: String,
    /// The vendor it is bought from, which must be there.
    vendor: String,
    /// What its denominations are counted in.
    currency: Currency,
    /// ISO 3166 codes of where it can be redeemed, two capital letters each; empty is everywhere.
    #[schema(max_items = 300)]
    countries: Vec<String>,
    /// Listed face values; none where there is a range.
    #[schema(max_items = 200)]
    denominations: Vec<AmountText>,
    /// Face values beside the listed ones.
    #[serde(default)]
    #[schema(value_type = Option<RangeRequest>)]
    denomination_range: Option<Object<RangeRequest>>,
    /// How long a voucher is good for.
    #[schema(value_type = PolicyRequest)]
    expiry_policy: Object<PolicyRequest>,
    /// What the holder of a voucher is told.
    #[schema(value_type = RedemptionRequest)]
    redemption: Object<RedemptionRequest>,
    /// Where vouchers come from when the shelf is short.
    #[serde(deserialize_with = "json::word")]
    route: Route,
    /// When an order of it waits for an operator; `rule` where nothing is said.
    #[serde(default, deserialize_with = "json::word")]
    approval: Approval,
    /// Whether the vendor takes vouchers back.
    #[serde(default)]
    returnable: bool,
    /// Fewest days that a voucher must have left to be allocated.
    #[serde(default)]
    #[schema(maximum = 3_650)]
    min_validity_days: u16,
    /// Below how many vouchers its availability reads `LOW_STOCK`.
    #[serde(default)]
    #[schema(maximum = 100_000)]
    low_stock_at: Option<u32>,
    /// Whether it is no longer sold.
    #[serde(default)]
    discontinued: bool,
}

/// Face values between two bounds, in equal steps.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = DenominationRangeRequest)]
struct RangeRequest {
    /// The least.
    min: AmountText,
    /// The most; it lies on a step from `min`.
    max: AmountText,
    /// From one to the next, counted from `min`.
    step: AmountText,
}

/// How long a voucher is good for.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ExpiryPolicyRequest)]
struct PolicyRequest {
    /// What `value` means.
    #[serde(rename = "type", deserialize_with = "json::word")]
    kind: ExpiryKind,
    #[serde(default)]
    #[schema(schema_with = expiry_value)]
    value: Option<serde_json::Value>,
}

/// What the holder of a voucher is told.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct RedemptionRequest {
    /// How to redeem it.
    #[serde(default)]
    #[schema(max_length = 20_000)]
    instructions: String,
    /// Under which terms.
    #[serde(default)]
    #[schema(max_length = 20_000)]
    terms: String,
}

/// What was found wrong so far.
#[derive(Default)]
struct Faults(Vec<Detail>);

impl Faults {
    fn add(&mut self, field: impl Into<String>, message: impl Into<String>) {
        self.0.push(Detail {
            field: field.into(),
            message: message.into(),
        });
    }

    /// The value, or its fault and something in its place.
    fn or_default<T: Default>(&mut self, checked: Result<T, ApiError>) -> T {
        checked.unwrap_or_else(|error| {
            self.0.extend(error.details);
            T::default()
        })
    }

    fn or_none<T>(&mut self, field: &str, checked: Result<T, String>) -> Option<T> {
        checked.map_err(|message| self.add(field, message)).ok()
    }
}

impl PutRequest {
    /// The product, or everything that is wrong with it.
    pub(super) fn into_product(
        self,
        product_id: ProductId,
        now: OffsetDateTime,
    ) -> Result<Product, ApiError> {
        let mut faults = Faults::default();
        let name = faults.or_default(body::name("name", &self.name));
        let brand = faults.or_default(body::bounded("brand", &self.brand, MAX_BRAND));
        for (field, id) in [("category_id", &self.category_id), ("vendor", &self.vendor)] {
            faults.or_none(field, check_slug(id).map_err(|error| error.to_string()));
        }
        let countries = check_countries(self.countries, &mut faults);
        let denominations = read_denominations(&self.denominations, self.currency, &mut faults);
        let range = self.denomination_range.as_ref();
        let range =
            range.and_then(|Object(range)| faults.or_none("denomination_range", range.read(self.currency)));
        if self.denominations.is_empty() && self.denomination_range.is_none() {
            faults.add("denominations", "expected at least one, or a denomination_range");
        }
        let policy = faults.or_none("expiry_policy.value", self.expiry_policy.0.check());
        let Object(redemption) = self.redemption;
        check_prose(&redemption, &mut faults);
        let low_stock_at = self.low_stock_at.unwrap_or(DEFAULT_LOW_STOCK_AT);
        if low_stock_at > MAX_LOW_STOCK_AT {
            faults.add("low_stock_at", format!("expected at most {MAX_LOW_STOCK_AT}"));
        }
        if self.min_validity_days > MAX_VALIDITY_DAYS {
            faults.add(
                "min_validity_days",
                format!("expected at most {MAX_VALIDITY_DAYS}"),
            );
        }
        let (Some(expiry_policy), true) = (policy, faults.0.is_empty()) else {
            return Err(ApiError::invalid_fields(faults.0));
        };
        Ok(Product {
            product_id,
            name,
            brand,
            category_id: self.category_id,
            vendor: self.vendor,
            currency: self.currency,
            countries,
            denominations,
            denomination_range: range,
            expiry_policy,
            redemption: Redemption {
                instructions: redemption.instructions,
                terms: redemption.terms,
            },
            route: self.route,
            approval: self.approval,
            returnable: self.returnable,
            min_validity_days: self.min_validity_days,
            low_stock_at,
            discontinued: self.discontinued,
            updated_at: now,
        })
    }
}

fn check_countries(mut countries: Vec<String>, faults: &mut Faults) -> Vec<String> {
    let code = |text: &String| text.len() == 2 && text.bytes().all(|b| b.is_ascii_uppercase());
    if countries.len() > MAX_COUNTRIES || !countries.iter().all(code) {
        faults.add(
            "countries",
            "expected ISO 3166 codes of two capital letters, such as DE",
        );
    }
    countries.sort();
    countries.dedup();
    countries
}

/// Face values in ascending order, each once.
fn read_denominations(texts: &[AmountText], currency: Currency, faults: &mut Faults) -> Vec<Amount> {
    if texts.len() > MAX_DENOMINATIONS {
        faults.add(
            "denominations",
            format!("expected at most {MAX_DENOMINATIONS}; more lie on a range"),
        );
        return Vec::new();
    }
    let mut found = Vec::with_capacity(texts.len());
    for (index, text) in texts.iter().enumerate() {
        let field = format!("denominations[{index}]");
        match read_face_value(text, currency) {
            Ok(amount) if found.contains(&amount) => faults.add(field, "is listed more than once"),
            Ok(amount) => found.push(amount),
            Err(message) => faults.add(field, message),
        }
    }
    found.sort_unstable();
    found
}

fn read_face_value(text: &AmountText, currency: Currency) -> Result<Amount, String> {
    let amount = text.parse(currency).map_err(|error| error.to_string())?;
    match amount.minor() {
        1..=MAX_DENOMINATION => Ok(amount),
        ..=0 => Err("expected more than zero".to_owned()),
        _ => Err("the face value is too large".to_owned()),
    }
}

impl RangeRequest {
    fn read(&self, currency: Currency) -> Result<DenominationRange, String> {
        let read = |text| read_face_value(text, currency);
        let range = DenominationRange {
            min: read(&self.min)?,
            max: read(&self.max)?,
            step: read(&self.step)?,
        };
        if range.min > range.max {
            return Err("min is more than max".to_owned());
        }
        if !range.contains(range.max) {
            return Err("max does not lie on a step from min".to_owned());
        }
        Ok(range)
    }
}

impl PolicyRequest {
    fn check(self) -> Result<ExpiryPolicy, String> {
        let value = self.value.filter(|value| !value.is_null());
        let right = match (self.kind, &value) {
            (ExpiryKind::None, value) => value.is_none(),
            (ExpiryKind::FixedDate, value) => value.as_ref().and_then(|v| day::parse(v.as_str()?)).is_some(),
            (ExpiryKind::MonthsFromIssue, value) => {
                let months = value.as_ref().and_then(serde_json::Value::as_u64);
                months.is_some_and(|months| (1..=MAX_MONTHS).contains(&months))
            }
        };
        if right {
            return Ok(ExpiryPolicy {
                kind: self.kind,
                value,
            });
        }
        Err(match self.kind {
            ExpiryKind::None => "expected nothing, as the voucher never expires".to_owned(),
            ExpiryKind::FixedDate => "expected a date as YYYY-MM-DD".to_owned(),
            ExpiryKind::MonthsFromIssue => format!("expected a number of months, 1 to {MAX_MONTHS}"),
        })
    }
}

fn check_prose(redemption: &RedemptionRequest, faults: &mut Faults) {
    for (field, text) in [
        ("instructions", &redemption.instructions),
        ("terms", &redemption.terms),
    ] {
        if text.chars().count() > MAX_PROSE {
            faults.add(
                format!("redemption.{field}"),
                format!("expected at most {MAX_PROSE} characters"),
            );
        }
    }
}

#[cfg(test)]
mod tests;
