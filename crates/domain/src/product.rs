//! Products, denominations and SKUs.

mod code_scope;
pub mod content;
mod texts;

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use time::OffsetDateTime;

use self::content::{ProductContent, Redemption, Translation};
use super::identifier::{self, ForbiddenCharacter};
use super::money::{Amount, Currency, Money};
use crate::expiry_policy::ExpiryPolicy;
use crate::labels::labels;

pub use self::code_scope::{CodeCase, CodeScope};

/// Maximum length of a product, category or vendor id in bytes: enough for `brand-country-kind`, short in
/// every index.
pub const MAX_SLUG_LENGTH: usize = 64;

/// A text that is not a product, category or vendor id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidSlug {
    #[error("expected 1 to 64 of a-z, 0-9, '-', '_' and '.', beginning with a letter or digit")]
    Alphabet,
    #[error("expected 1 to 64 of a-z, 0-9, '-', '_' and '.', found {0}")]
    Character(#[from] ForbiddenCharacter),
}

/// The id of a product, chosen by the operator. Cheap to clone.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProductId(Arc<str>);

impl ProductId {
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for ProductId {
    type Err = InvalidSlug;

    fn from_str(text: &str) -> Result<Self, InvalidSlug> {
        parse_slug(text).map(|slug| Self(Arc::from(slug)))
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

/// Parses the id of a product, a category or a vendor: an identifier with an alphabet of its own. Returns it
/// trimmed.
///
/// # Errors
/// [`InvalidSlug`] if it is not valid.
pub fn parse_slug(text: &str) -> Result<&str, InvalidSlug> {
    let text = text.trim();
    identifier::normalize(text)?;
    let bytes = text.as_bytes();
    let first = bytes
        .first()
        .is_some_and(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    let rest = bytes
        .iter()
        .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-_.".contains(b));
    (first && rest && bytes.len() <= MAX_SLUG_LENGTH)
        .then_some(text)
        .ok_or(InvalidSlug::Alphabet)
}

/// The text is not a SKU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a SKU is PRODUCT_ID/MINOR_UNITS")]
pub struct InvalidSku;

/// A product at one denomination: the unit of stock keeping and the key of an inventory actor.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[cfg_attr(feature = "sqlx", derive(sqlx::FromRow))]
pub struct Sku {
    pub product_id: ProductId,
    /// Face value in minor units of the product's currency.
    pub denomination: Amount,
}

impl fmt::Display for Sku {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.product_id, self.denomination.minor())
    }
}

impl FromStr for Sku {
    type Err = InvalidSku;

    fn from_str(text: &str) -> Result<Self, InvalidSku> {
        let (product_id, denomination) = text.rsplit_once('/').ok_or(InvalidSku)?;
        Ok(Self {
            product_id: product_id.parse().map_err(|_| InvalidSku)?,
            denomination: Amount::from_minor(denomination.parse().map_err(|_| InvalidSku)?),
        })
    }
}

impl fmt::Debug for Sku {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

labels! {
    /// How a stock shortfall of the product is covered.
    pub enum SupplyRoute: "lowercase" as Route,
        "How a stock shortfall is covered: `stock` (not at all: only imported vouchers are sold) or `vendor` \
         (vouchers are bought from the product's vendor)." {
        /// No vouchers are bought: only imported ones are sold.
        Stock,
        /// The product's vendor sells them on request.
        Vendor,
    }
}

labels! {
    /// When an order of the product needs approval.
    #[derive(Default)]
    pub enum ApprovalPolicy: "lowercase" as Approval,
        "When an order of the product needs an operator's approval: `rule` (as the partner's rule says) or \
         `always`." {
        /// The partner's approval rule decides.
        #[default]
        Rule,
        Always,
    }
}

labels! {
    /// What identifies a voucher of the product among those of its brand.
    #[derive(Default)]
    pub enum CodeIdentity: "snake_case",
        "What identifies a voucher of the product among those of its brand: `code` (the same code with another PIN is a \
         conflict) or `code_and_pin` (it is another voucher)." {
        #[default]
        Code,
        /// The brand issues one code with several PINs.
        CodeAndPin,
    }
}

/// A range of face values in equal steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct DenominationRange {
    /// Lowest face value.
    pub min: Money,
    /// Highest face value.
    pub max: Money,
    /// Step between face values, counted from `min`.
    pub step: Money,
}

impl DenominationRange {
    /// The range between these amounts of one currency.
    #[must_use]
    pub fn new(amounts: [Amount; 3], currency: Currency) -> Self {
        let [min, max, step] = amounts.map(|amount| amount.of(currency));
        Self { min, max, step }
    }

    /// Whether `amount` is a face value of the range.
    #[must_use]
    pub fn contains(&self, amount: Amount) -> bool {
        let [min, max, step] = [self.min, self.max, self.step].map(|money| money.amount);
        let above = amount.checked_sub(min).map(Amount::minor);
        (min..=max).contains(&amount)
            && step.minor() > 0
            && above.is_some_and(|above| above % step.minor() == 0)
    }
}

/// A product with all of its fields.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct Product {
    /// Id of the product.
    pub product_id: ProductId,
    /// Display name.
    pub name: String,
    /// Brand. Codes are unique within a brand.
    pub brand: String,
    /// Id of the category.
    pub category_id: String,
    /// Id of the vendor.
    pub vendor: String,
    /// Currency of the denominations.
    pub currency: Currency,
    /// ISO 3166 codes of the countries of redemption; empty means all.
    #[schema(value_type = Vec<crate::text_schema::Country>)]
    pub countries: Vec<String>,
    /// Listed face values, ascending.
    pub denominations: Vec<Money>,
    /// Range of further face values.
    #[schema(required)]
    pub denomination_range: Option<DenominationRange>,
    /// Validity of vouchers.
    pub expiry_policy: ExpiryPolicy,
    /// Redemption instructions for the holder of a voucher, in the language of the content.
    pub redemption: Redemption,
    /// What partners show of the product.
    pub content: ProductContent,
    /// Texts in other languages, by language.
    pub translations: Vec<Translation>,
    /// Source of vouchers when stock is short.
    pub route: SupplyRoute,
    /// When orders of the product need the approval of an operator.
    pub approval: ApprovalPolicy,
    /// Whether vouchers can be returned.
    pub returnable: bool,
    /// What identifies a voucher among those of the brand.
    pub code_identity: CodeIdentity,
    /// Whether the case of codes counts.
    pub code_case: CodeCase,
    /// Minimum remaining validity of an allocated voucher. Days.
    pub min_validity_days: u16,
    /// Number of free vouchers below which availability is `LOW_STOCK`.
    pub low_stock_at: u32,
    /// Whether the product is no longer sold.
    pub discontinued: bool,
    /// Time of the last change.
    #[serde(with = "crate::timestamp")]
    pub updated_at: OffsetDateTime,
}

impl Product {
    /// A product with the defaults of all other fields: sold from stock, without a face value.
    #[must_use]
    pub fn new(product_id: ProductId, currency: Currency, updated_at: OffsetDateTime) -> Self {
        Self {
            name: product_id.to_string(),
            product_id,
            brand: String::new(),
            category_id: String::new(),
            vendor: String::new(),
            currency,
            countries: Vec::new(),
            denominations: Vec::new(),
            denomination_range: None,
            expiry_policy: ExpiryPolicy::NONE,
            redemption: Redemption::default(),
            content: ProductContent::default(),
            translations: Vec::new(),
            route: SupplyRoute::Stock,
            approval: ApprovalPolicy::Rule,
            returnable: false,
            code_identity: CodeIdentity::Code,
            code_case: CodeCase::Exact,
            min_validity_days: 0,
            low_stock_at: 0,
            discontinued: false,
            updated_at,
        }
    }

    /// The codes among which each of its codes occurs once.
    #[must_use]
    pub fn code_scope(&self) -> CodeScope<'_> {
        CodeScope {
            brand: &self.brand,
            case: self.code_case,
        }
    }

    /// Whether the product is sold at this face value.
    #[must_use]
    pub fn has_denomination(&self, denomination: Amount) -> bool {
        let mut listed = self.denominations.iter();
        listed.any(|listed| listed.amount == denomination)
            || self
                .denomination_range
                .is_some_and(|range| range.contains(denomination))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn denomination_range_contains_only_its_steps() {
        let minor = Amount::from_minor;
        let usd = "USD".parse().unwrap();
        let range = DenominationRange::new([1_000, 5_000, 500].map(minor), usd);
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
        let range = DenominationRange::new([1_000, 5_000, 0].map(minor), usd);
        assert!(!range.contains(minor(1_000)));
    }

    #[test]
    fn slug_accepts_lower_case_ascii_only() {
        for text in ["sbx-instant", "a", "0", "brand.eu_25"] {
            assert!(text.parse::<ProductId>().is_ok(), "{text}");
        }
        for text in ["", "-a", "A", "a b", "a/b", "ä", &"x".repeat(65)] {
            assert_eq!(text.parse::<ProductId>(), Err(InvalidSlug::Alphabet), "{text}");
        }
        assert_eq!(" card ".parse::<ProductId>().unwrap().as_str(), "card");
        let error = "card\u{200b}".parse::<ProductId>().unwrap_err().to_string();
        assert!(error.contains("(U+200B) at position 5"), "{error}");
    }
}
