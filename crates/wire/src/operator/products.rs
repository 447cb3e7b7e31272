//! Product definition of `PUT /products/{product_id}`; reports the errors of all fields at once.

mod arguments;
pub mod content;
mod denominations;

use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use utoipa::ToSchema;
use vouchsafe_domain::arguments::enum_parser;
use vouchsafe_domain::bounds::{Count, List};
use vouchsafe_domain::catalogue::Catalogue;
use vouchsafe_domain::expiry_policy::{ExpiryKind, ExpiryPolicy, expiry_value_schema};
use vouchsafe_domain::iso_date;
use vouchsafe_domain::money::{AmountText, Currency};
use vouchsafe_domain::product::{
    ApprovalPolicy, CodeCase, CodeIdentity, Product, ProductId, SupplyRoute, parse_slug,
};
use vouchsafe_domain::text_schema::Country;

use self::content::{ProductContentRequest, RedemptionRequest};
use self::denominations::{DenominationRangeRequest, parse_denominations};
use super::text::{Brand, Name};
use crate::error_body::{ErrorDetail, InvalidRequest};
use crate::json::{self, JsonObject};

/// Listed face values; use a range for more.
const MAX_DENOMINATIONS: usize = 200;

type Denominations = List<AmountText, 0, MAX_DENOMINATIONS>;

/// More than there are countries.
const MAX_COUNTRIES: usize = 300;

type Countries = List<Country, 0, MAX_COUNTRIES>;

/// A century; longer is a mistake.
const MAX_MONTHS: u32 = 1_200;

/// Ten years.
const MAX_VALIDITY_DAYS: u16 = 3_650;

const DEFAULT_LOW_STOCK_AT: u32 = 20;

/// Availability counts up to this number.
const MAX_LOW_STOCK_AT: u32 = 100_000;

/// The options with a value of a product. clap leaves the group of a struct empty if some fields are
/// flattened, as the expiry policy is.
const OPTIONS: [&str; 14] = [
    "name",
    "brand",
    "category_id",
    "vendor",
    "currency",
    "countries",
    "denominations",
    "denomination_range",
    "route",
    "approval",
    "code_identity",
    "code_case",
    "min_validity_days",
    "low_stock_at",
];

/// Definition of a product.
#[derive(Debug, Serialize, Deserialize, ToSchema, clap::Args)]
#[serde(deny_unknown_fields)]
#[group(args = OPTIONS)]
pub struct ProductRequest {
    /// Display name.
    #[schema(value_type = Name)]
    #[arg(long)]
    name: String,
    /// Brand; codes are unique within a brand.
    #[schema(value_type = Brand)]
    #[arg(long)]
    brand: String,
    /// ID of an existing category.
    #[arg(long = "category", value_name = "CATEGORY")]
    category_id: String,
    /// ID of an existing vendor.
    #[arg(long, default_value = "mock")]
    vendor: String,
    /// Currency of the denominations.
    #[arg(long)]
    currency: Currency,
    /// ISO 3166 codes (two capital letters) of the countries where it can be redeemed; empty: everywhere.
    #[schema(value_type = Countries)]
    #[arg(
        long = "country",
        value_name = "CODE",
        help = "Country where it can be redeemed; without any, everywhere. Can be repeated"
    )]
    countries: Vec<String>,
    /// Face values; may be empty if there is a range.
    #[schema(value_type = Denominations)]
    #[arg(
        long = "denomination",
        value_name = "AMOUNT",
        help = "Face value. Can be repeated"
    )]
    denominations: Vec<AmountText>,
    /// Range of further face values.
    #[serde(default)]
    #[schema(value_type = Option<DenominationRangeRequest>)]
    #[arg(long = "range", value_name = "MIN:MAX:STEP", value_parser = arguments::parse_range)]
    denomination_range: Option<JsonObject<DenominationRangeRequest>>,
    /// Expiry policy of the vouchers.
    #[schema(value_type = ExpiryPolicyRequest)]
    #[command(flatten)]
    expiry_policy: JsonObject<ExpiryPolicyRequest>,
    /// Information for the holder of a voucher.
    #[schema(value_type = RedemptionRequest)]
    #[command(flatten)]
    redemption: JsonObject<RedemptionRequest>,
    /// What partners show of the product.
    #[serde(default)]
    #[schema(value_type = ProductContentRequest)]
    #[command(flatten)]
    content: JsonObject<ProductContentRequest>,
    /// Source of vouchers when stock is short.
    #[serde(deserialize_with = "json::enum_value")]
    #[arg(long, default_value = "stock", value_parser = enum_parser::<SupplyRoute>())]
    route: SupplyRoute,
    /// Which orders wait for approval; default `rule`.
    #[serde(default, deserialize_with = "json::enum_value")]
    #[arg(
            long,
            default_value = "rule",
            value_parser = enum_parser::<ApprovalPolicy>(),
            help = "`always` if every order waits for approval"
        )]
    approval: ApprovalPolicy,
    /// Whether the vendor accepts returned vouchers.
    #[serde(default)]
    #[arg(long, help = "Mark vouchers as returnable to the vendor")]
    returnable: bool,
    /// What identifies a voucher among those of the brand; default `code`.
    #[serde(default, deserialize_with = "json::enum_value")]
    #[arg(
            long,
            default_value = "code",
            value_parser = enum_parser::<CodeIdentity>(),
            help = "`code_and_pin` if the brand issues one code with several PINs"
        )]
    code_identity: CodeIdentity,
    /// Whether the case of codes counts; cannot change once the brand has stock. Default: as it is for the
    /// product or other products of its brand, else `exact`.
    #[serde(default, deserialize_with = "json::optional_enum_value")]
    #[arg(
            long,
            value_parser = enum_parser::<CodeCase>(),
            help = "`ignored` if codes that differ only in case are one [default: as it is, or as for the brand]"
        )]
    code_case: Option<CodeCase>,
    /// Days for which a voucher must still be valid when it is allocated.
    #[serde(default, deserialize_with = "vouchsafe_domain::whole_number::required")]
    #[schema(value_type = Count<0, { MAX_VALIDITY_DAYS as u32 }>)]
    #[arg(long, default_value_t = 0, value_name = "DAYS")]
    min_validity_days: u16,
    /// Stock level below which availability is `LOW_STOCK`; default 20.
    #[serde(default, deserialize_with = "vouchsafe_domain::whole_number::optional")]
    #[schema(value_type = Option<Count<0, { MAX_LOW_STOCK_AT }>>)]
    #[arg(long, value_name = "N")]
    low_stock_at: Option<u32>,
    /// Whether sales have ended.
    #[serde(default)]
    #[arg(long, help = "End sales; the product stays readable")]
    discontinued: bool,
}

/// Expiry policy of the vouchers.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ExpiryPolicyRequest {
    /// Kind of policy.
    #[serde(rename = "type", deserialize_with = "json::enum_value")]
    kind: ExpiryKind,
    /// The last valid day; only for `FIXED_DATE`.
    #[serde(default)]
    #[schema(format = Date)]
    expires_on: Option<String>,
    /// Months of validity; only for `MONTHS_FROM_ISSUE`.
    #[serde(default, deserialize_with = "vouchsafe_domain::whole_number::optional")]
    #[schema(value_type = Option<Count<1, { MAX_MONTHS }>>)]
    valid_months: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = expiry_value_schema)]
    value: Option<serde_json::Value>,
}

#[derive(Default)]
struct FieldErrors(Vec<ErrorDetail>);

impl FieldErrors {
    fn add(&mut self, field: impl Into<String>, message: impl Into<String>) {
        self.0.push(ErrorDetail::new(field.into(), message.into()));
    }

    fn or_none<T>(&mut self, field: &str, checked: Result<T, String>) -> Option<T> {
        checked.map_err(|message| self.add(field, message)).ok()
    }
}

impl ProductRequest {
    /// Returns the product, or the errors of all fields. `catalogue` has the default of `code_case`.
    ///
    /// # Errors
    /// `VALIDATION_FAILED`.
    pub fn into_product(
        self,
        product_id: ProductId,
        catalogue: &Catalogue,
        now: OffsetDateTime,
    ) -> Result<Product, InvalidRequest> {
        let mut errors = FieldErrors::default();
        let name = errors.or_none("name", self.name.parse::<Name>());
        let brand = errors.or_none("brand", self.brand.parse::<Brand>());
        let mut slug = |field, id: &str| {
            let slug = parse_slug(id).map(ToOwned::to_owned);
            errors.or_none(field, slug.map_err(|error| error.to_string()))
        };
        let category_id = slug("category_id", &self.category_id).unwrap_or_default();
        let vendor = slug("vendor", &self.vendor).unwrap_or_default();
        let countries = check_countries(self.countries, &mut errors);
        let denominations = parse_denominations(&self.denominations, self.currency, &mut errors);
        let range = self.denomination_range.as_ref();
        let range = range
            .and_then(|JsonObject(range)| errors.or_none("denomination_range", range.parse(self.currency)));
        if self.denominations.is_empty() && self.denomination_range.is_none() {
            errors.add("denominations", "expected at least one, or a denomination_range");
        }
        let policy = self.expiry_policy.0.parse();
        let policy = policy
            .map_err(|(field, message)| errors.add(format!("expiry_policy.{field}"), message))
            .ok();
        let JsonObject(content) = self.content;
        let content = errors
            .or_none("content.images", content.into_content())
            .unwrap_or_default();
        let low_stock_at = self.low_stock_at.unwrap_or(DEFAULT_LOW_STOCK_AT);
        if low_stock_at > MAX_LOW_STOCK_AT {
            errors.add("low_stock_at", format!("expected at most {MAX_LOW_STOCK_AT}"));
        }
        if self.min_validity_days > MAX_VALIDITY_DAYS {
            errors.add(
                "min_validity_days",
                format!("expected at most {MAX_VALIDITY_DAYS}"),
            );
        }
        let (Some(name), Some(brand), Some(expiry_policy), []) = (name, brand, policy, &*errors.0) else {
            return Err(InvalidRequest::fields(errors.0));
        };
        let brand = String::from(brand);
        let code_case = self
            .code_case
            .unwrap_or_else(|| catalogue.code_case_of(&product_id, &brand));
        Ok(Product {
            product_id,
            name: name.into(),
            brand,
            category_id,
            vendor,
            currency: self.currency,
            countries,
            denominations,
            denomination_range: range,
            expiry_policy,
            redemption: self.redemption.0.into(),
            content,
            // They have an operation of their own: what is stored stays.
            translations: Vec::new(),
            route: self.route,
            approval: self.approval,
            returnable: self.returnable,
            code_identity: self.code_identity,
            code_case,
            min_validity_days: self.min_validity_days,
            low_stock_at,
            discontinued: self.discontinued,
            updated_at: now,
        })
    }
}

fn check_countries(mut countries: Vec<String>, errors: &mut FieldErrors) -> Vec<String> {
    let code = |text: &String| text.len() == 2 && text.bytes().all(|b| b.is_ascii_uppercase());
    if countries.len() > MAX_COUNTRIES || !countries.iter().all(code) {
        errors.add(
            "countries",
            "expected ISO 3166 codes of two capital letters, such as DE",
        );
    }
    countries.sort();
    countries.dedup();
    countries
}

impl ExpiryPolicyRequest {
    /// The policy, or the field that is wrong and what it must be.
    fn parse(self) -> Result<ExpiryPolicy, (&'static str, String)> {
        let stated = (self.expires_on, self.valid_months);
        let Some(value) = self.value.filter(|value| !value.is_null()) else {
            return check_policy(self.kind, stated);
        };
        let months = vouchsafe_domain::whole_number::of(&value);
        let months = months.map(|months| u32::try_from(months).unwrap_or(u32::MAX));
        let earlier = (value.as_str().map(str::to_owned), months);
        if earlier == (None, None) || (stated != (None, None) && stated != earlier) {
            return Err((
                "value",
                "expected a day or a number of months, as in `expires_on` or `valid_months`".to_owned(),
            ));
        }
        check_policy(self.kind, earlier).map_err(|(_, message)| ("value", message))
    }
}

fn check_policy(
    kind: ExpiryKind,
    (expires_on, valid_months): (Option<String>, Option<u32>),
) -> Result<ExpiryPolicy, (&'static str, String)> {
    match (kind, expires_on, valid_months) {
        (ExpiryKind::None, None, None) => Ok(ExpiryPolicy::NONE),
        (ExpiryKind::None, day, _) => {
            let field = if day.is_some() {
                "expires_on"
            } else {
                "valid_months"
            };
            Err((
                field,
                "expected no value, because these vouchers never expire".to_owned(),
            ))
        }
        (ExpiryKind::FixedDate, Some(day), None) if iso_date::parse_date(&day).is_some() => {
            Ok(ExpiryPolicy::fixed_date(&day))
        }
        (ExpiryKind::FixedDate, _, None) => Err(("expires_on", "expected a date as YYYY-MM-DD".to_owned())),
        (ExpiryKind::FixedDate, _, Some(_)) => Err((
            "valid_months",
            "expected no number of months, but a last valid day".to_owned(),
        )),
        (ExpiryKind::MonthsFromIssue, None, Some(months)) if (1..=MAX_MONTHS).contains(&months) => {
            Ok(ExpiryPolicy::months_from_issue(months))
        }
        (ExpiryKind::MonthsFromIssue, None, _) => Err((
            "valid_months",
            format!("expected a number of months, 1 to {MAX_MONTHS}"),
        )),
        (ExpiryKind::MonthsFromIssue, Some(_), _) => {
            Err(("expires_on", "expected no day, but a number of months".to_owned()))
        }
    }
}

#[cfg(test)]
mod tests;
