//! What can be ordered: products, their denominations, and the SKU that both together name.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use time::OffsetDateTime;
use utoipa::ToSchema;

use super::money::{Amount, Currency};
use super::schema::expiry_value;

/// Longest text of a product, category or vendor id, in bytes: enough for `brand-country-kind`, short in every index.
pub const MAX_SLUG_LENGTH: usize = 64;

/// Why a text is no product, category or vendor id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected 1 to 64 of a-z, 0-9, '-', '_' and '.', beginning with a letter or digit")]
pub struct InvalidSlug;

/// The id of a product, chosen by the operator. Cheap to clone.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProductId(Arc<str>);

impl ProductId {
    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for ProductId {
    type Err = InvalidSlug;

    fn from_str(text: &str) -> Result<Self, InvalidSlug> {
        check_slug(text).map(|()| Self(Arc::from(text)))
    }
}

impl fmt::Display for ProductId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for ProductId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Serialize for ProductId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for ProductId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// Checks the id of a product, a category or a vendor.
///
/// # Errors
/// [`InvalidSlug`] when it is none.
pub fn check_slug(text: &str) -> Result<(), InvalidSlug> {
    let bytes = text.as_bytes();
    let first = bytes
        .first()
        .is_some_and(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    let rest = bytes
        .iter()
        .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-_.".contains(b));
    (first && rest && bytes.len() <= MAX_SLUG_LENGTH)
        .then_some(())
        .ok_or(InvalidSlug)
}

/// A product at one denomination: what stock is counted by, and the key of an inventory actor.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Sku {
    pub product_id: ProductId,
    /// At which face value, in minor units of the product's currency.
    pub denomination: Amount,
}

impl fmt::Display for Sku {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.product_id, self.denomination.minor())
    }
}

impl fmt::Debug for Sku {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Where vouchers come from when the shelf is short.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(
    description = "Where vouchers come from when the shelf is short: `stock` (from nowhere: what is imported is \
    all there is) or `vendor` (they are bought from the product's vendor)."
)]
pub enum Route {
    /// From nowhere: what is imported is all there is.
    Stock,
    /// They are bought from the product's vendor.
    Vendor,
}

/// When an order of the product waits for an operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(
    description = "When an order of the product waits for an operator: `rule` (when the partner's rule says so) or \
    `always`."
)]
pub enum Approval {
    /// When the partner's rule says so.
    #[default]
    Rule,
    Always,
}

/// Face values between two bounds, in equal steps; all in minor units.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct DenominationRange {
    pub min: Amount,
    pub max: Amount,
    /// From one to the next, counted from `min`.
    pub step: Amount,
}

impl DenominationRange {
    /// Whether `amount` lies on a step of the range.
    #[must_use]
    pub fn contains(&self, amount: Amount) -> bool {
        let (min, max, step) = (self.min.minor(), self.max.minor(), self.step.minor());
        let within = (min..=max).contains(&amount.minor());
        within
            && step > 0
            && amount
                .checked_sub(self.min)
                .is_some_and(|above| above.minor() % step == 0)
    }
}

/// How long a voucher of the product is good for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ExpiryPolicy {
    /// What `value` means.
    #[serde(rename = "type")]
    pub kind: ExpiryKind,
    /// A date for `FIXED_DATE`, a count for `MONTHS_FROM_ISSUE`, absent for `NONE`.
    #[serde(default)]
    #[schema(required, schema_with = expiry_value)]
    pub value: Option<serde_json::Value>,
}

/// The kinds of expiry policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[schema(
    description = "The kinds of expiry policy: `FIXED_DATE` (every voucher ends on one date), `MONTHS_FROM_ISSUE` \
    (so many months after it was issued), `NONE` (never)."
)]
pub enum ExpiryKind {
    /// Every voucher ends on one date.
    FixedDate,
    /// So many months after it was issued.
    MonthsFromIssue,
    None,
}

/// What the holder of a voucher is told.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct Redemption {
    /// How to redeem it.
    #[serde(default)]
    #[schema(required)]
    pub instructions: String,
    /// Under which terms.
    #[serde(default)]
    #[schema(required)]
    pub terms: String,
}

/// A product of the catalogue, as the operator set it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Product {
    pub product_id: ProductId,
    /// What it is called.
    pub name: String,
    /// Whose voucher it is; codes are unique within a brand.
    pub brand: String,
    /// The category it is in.
    pub category_id: String,
    /// The vendor it is bought from.
    pub vendor: String,
    /// What its denominations are counted in.
    pub currency: Currency,
    /// ISO 3166 codes of where it can be redeemed; empty is everywhere.
    pub countries: Vec<String>,
    /// Listed face values, in minor units, ascending.
    pub denominations: Vec<Amount>,
    /// Face values beside the listed ones.
    pub denomination_range: Option<DenominationRange>,
    /// How long a voucher is good for.
    pub expiry_policy: ExpiryPolicy,
    /// What the holder is told.
    pub redemption: Redemption,
    /// Where vouchers come from when the shelf is short.
    pub route: Route,
    /// When an order waits for an operator.
    pub approval: Approval,
    /// Whether the vendor takes a bought voucher back.
    pub returnable: bool,
    /// A voucher with fewer days left than this is not allocated. Days.
    pub min_validity_days: u16,
    /// Below how many vouchers the availability reads `LOW_STOCK`.
    pub low_stock_at: u32,
    /// Out of sale for good; still readable.
    pub discontinued: bool,
    /// When the operator last set it.
    pub updated_at: OffsetDateTime,
}

impl Product {
    /// Whether the product is sold at this face value.
    #[must_use]
    pub fn offers(&self, denomination: Amount) -> bool {
        self.denominations.contains(&denomination)
            || self
                .denomination_range
                .is_some_and(|range| range.contains(denomination))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_contains_its_steps_and_nothing_else() {
        let minor = Amount::from_minor;
        let range = DenominationRange {
            min: minor(1_000),
            max: minor(5_000),
            step: minor(500),
        };
        for (amount, inside) in [
            (1_000, true),
            (1_500, true),
            (5_000, true),
            (999, false),
            (1_250, false),
            (5_500, false),
            (i64::MIN, false),
        ] {
            assert_eq!(range.contains(minor(amount)), inside, "{amount}");
        }
        assert!(
            !DenominationRange {
                step: minor(0),
                ..range
            }
            .contains(minor(1_000))
        );
    }

    #[test]
    fn slugs_are_plain() {
        for text in ["sbx-instant", "a", "0", "brand.eu_25"] {
            assert!(text.parse::<ProductId>().is_ok(), "{text}");
        }
        for text in ["", "-a", "A", "a b", "a/b", "ä", &"x".repeat(65)] {
            assert!(text.parse::<ProductId>().is_err(), "{text}");
        }
    }
}
