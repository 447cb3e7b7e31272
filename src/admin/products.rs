//! From what an operator says of a product to a product: every field checked, all faults told at once.

use serde::Deserialize;
use time::{Date, OffsetDateTime};
use vouchsafe_actors::domain::money::{Amount, AmountText, Currency};
use vouchsafe_actors::domain::product::{
    Approval, DenominationRange, ExpiryKind, ExpiryPolicy, Product, ProductId, Redemption, Route, check_slug,
};

use super::body;
use crate::errors::{ApiError, Detail};

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

/// The body of `PUT /products/{product_id}`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PutRequest {
    name: String,
    brand: String,
    category_id: String,
    vendor: String,
    currency: Currency,
    countries: Vec<String>,
    denominations: Vec<AmountText>,
    #[serde(default)]
    denomination_range: Option<RangeRequest>,
    expiry_policy: PolicyRequest,
    redemption: RedemptionRequest,
    route: Route,
    #[serde(default)]
    approval: Approval,
    #[serde(default)]
    returnable: bool,
    #[serde(default)]
    min_validity_days: u16,
    #[serde(default)]
    low_stock_at: Option<u32>,
    #[serde(default)]
    discontinued: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RangeRequest {
    min: AmountText,
    max: AmountText,
    step: AmountText,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PolicyRequest {
    #[serde(rename = "type")]
    kind: ExpiryKind,
    #[serde(default)]
    value: Option<serde_json::Value>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RedemptionRequest {
    #[serde(default)]
    instructions: String,
    #[serde(default)]
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
        let range = range.and_then(|range| faults.or_none("denomination_range", range.read(self.currency)));
        if self.denominations.is_empty() && self.denomination_range.is_none() {
            faults.add("denominations", "expected at least one, or a denomination_range");
        }
        let policy = faults.or_none("expiry_policy.value", self.expiry_policy.check());
        check_prose(&self.redemption, &mut faults);
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
                instructions: self.redemption.instructions,
                terms: self.redemption.terms,
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
            (ExpiryKind::FixedDate, value) => value.as_ref().and_then(|v| parse_date(v.as_str()?)).is_some(),
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

/// A date in the form `YYYY-MM-DD`, and in no other.
pub(super) fn parse_date(text: &str) -> Option<Date> {
    let format = time::macros::format_description!("[year]-[month]-[day]");
    (text.len() == 10)
        .then(|| Date::parse(text, &format).ok())
        .flatten()
}

#[cfg(test)]
mod tests;
