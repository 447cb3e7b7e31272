//! Bodies of `POST /orders/{order_id}/fulfil`.

use serde::{Deserialize, Serialize};
use time::Date;
use utoipa::ToSchema;
use vouchsafe_domain::bounds::{List, WrittenText};
use vouchsafe_domain::expiry_policy::last_valid_day;
use vouchsafe_domain::money::AmountText;
use vouchsafe_domain::order::{Order, OrderLine};
use vouchsafe_domain::product::{Product, Sku};
use vouchsafe_domain::voucher::Expiry;
use vouchsafe_security::vault::code::{CodePart, CodeParts};

use super::OrderOfPartner;
use crate::error_body::{ErrorDetail, InvalidRequest};
use crate::json::{JsonObject, SecretText};
use crate::operator::stock::row::{DamagePolicy, RowError, RowPolicy, VoucherFields, VoucherRow};
use crate::operator::stock::voucher_list::ListedVoucher;

/// An order has no more.
const MAX_VOUCHERS: usize = 1_000;

type Vouchers = List<VoucherRequest, 1, MAX_VOUCHERS>;

/// Vouchers for an order.
#[derive(Debug, Serialize, Deserialize, ToSchema, clap::Args)]
#[serde(deny_unknown_fields)]
pub struct FulfilRequest {
    /// Product of the vouchers. Optional, with `denomination`, if the order needs only one SKU.
    #[serde(default)]
    #[arg(
        long = "product",
        value_name = "PRODUCT",
        requires = "denomination",
        help = "Product ID; required if the order needs several products"
    )]
    product_id: Option<String>,
    /// Face value of the vouchers.
    #[serde(default)]
    #[arg(long, value_name = "AMOUNT", requires = "product_id", help = "Face value")]
    denomination: Option<AmountText>,
    /// The vouchers; at most as many new ones as the order needs.
    #[schema(value_type = Vouchers)]
    #[arg(skip)]
    pub vouchers: Vec<JsonObject<VoucherRequest>>,
    /// Accept codes that look damaged by a spreadsheet (`6.03571E+15`, `#N/A`, `="0060"`), for brands whose
    /// codes look so.
    #[serde(default)]
    #[arg(
        long,
        help = "Accept codes that look damaged by a spreadsheet, such as 6.03571E+15 or #N/A"
    )]
    pub accept_as_is: bool,
}

/// A voucher, with the columns of an import as fields.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct VoucherRequest {
    /// Code to redeem.
    #[schema(value_type = WrittenText<1, { CodePart::Code.max_bytes() }>)]
    code: SecretText,
    /// PIN required with the code.
    #[serde(default)]
    #[schema(value_type = Option<WrittenText<0, { CodePart::Pin.max_bytes() }>>)]
    pin: Option<SecretText>,
    /// Serial number printed on the card.
    #[serde(default)]
    #[schema(value_type = Option<WrittenText<0, { CodePart::Serial.max_bytes() }>>)]
    serial: Option<SecretText>,
    /// Redemption URL.
    #[serde(default)]
    #[schema(value_type = Option<WrittenText<0, { CodePart::Url.max_bytes() }>>)]
    url: Option<SecretText>,
    /// Last valid day, `YYYY-MM-DD`. Default: by the product's expiry policy.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    expiry: Option<SecretText>,
}

/// Result of a manual fulfilment.
#[derive(Serialize, ToSchema)]
pub struct FulfilReport<'a> {
    /// Number of new vouchers.
    pub imported: u64,
    /// Number of vouchers stored before, for this order or otherwise.
    pub duplicates: u64,
    /// The order after the change.
    #[schema(inline = false)]
    pub order: OrderOfPartner<'a>,
}

impl FulfilRequest {
    /// The SKU that the request names, or the only one of the order.
    ///
    /// # Errors
    /// `VALIDATION_FAILED`.
    pub fn resolve_sku(&self, order: &Order) -> Result<Sku, InvalidRequest> {
        let named = |line: &&OrderLine| match (&self.product_id, &self.denomination) {
            (None, None) => true,
            (Some(product_id), Some(denomination)) => {
                let face = denomination.parse(order.total.currency);
                line.product_id.as_str() == product_id && face.is_ok_and(|face| face == line.denomination)
            }
            _ => false,
        };
        if self.product_id.is_some() != self.denomination.is_some() {
            return Err(InvalidRequest::field(
                "product_id",
                "expected both product_id and denomination, or neither",
            ));
        }
        let mut skus: Vec<Sku> = order.lines.iter().filter(named).map(OrderLine::sku).collect();
        skus.sort();
        skus.dedup();
        let [sku] = &skus[..] else {
            let message = if skus.is_empty() {
                "the order has no item of this product and denomination"
            } else {
                "the order has several products or denominations; name product_id and denomination"
            };
            return Err(InvalidRequest::field("product_id", message));
        };
        Ok(sku.clone())
    }

    /// Checks that a record of a list names no other SKU than the request.
    ///
    /// # Errors
    /// [`RowError::OtherSku`].
    pub fn check_listed(&self, listed: &ListedVoucher<'_>) -> Result<(), RowError> {
        if listed.product_id.is_some() && listed.product_id != self.product_id.as_deref() {
            return Err(RowError::OtherSku("product_id"));
        }
        let is_named = |text: &str| {
            let named = self.denomination.as_ref();
            named.is_some_and(|named| named.is_same_number(&AmountText::from(text)))
        };
        if listed.denomination.is_some_and(|text| !is_named(text)) {
            return Err(RowError::OtherSku("denomination"));
        }
        Ok(())
    }

    /// Returns the vouchers, or the errors of all invalid ones.
    ///
    /// # Errors
    /// `VALIDATION_FAILED`.
    pub fn parse_rows(
        &self,
        today: Date,
        product: &Product,
        order: &Order,
        sku: &Sku,
    ) -> Result<Vec<VoucherRow>, InvalidRequest> {
        if !(1..=MAX_VOUCHERS).contains(&self.vouchers.len()) {
            let message = format!("expected 1 to {MAX_VOUCHERS}");
            return Err(InvalidRequest::field("vouchers", message));
        }
        let policy = RowPolicy {
            damage: DamagePolicy::new(self.accept_as_is),
            today,
            default_expiry: last_valid_day(&product.expiry_policy, today),
        };
        let of_sku = order.lines.iter().filter(|line| line.sku() == *sku);
        let days = of_sku
            .map(|line| line.min_validity_days)
            .max()
            .unwrap_or_default();
        let not_before = Expiry::with_remaining_days(today, u16::try_from(days).unwrap_or(u16::MAX));
        let (mut rows, mut errors) = (Vec::with_capacity(self.vouchers.len()), Vec::new());
        for (index, JsonObject(voucher)) in self.vouchers.iter().enumerate() {
            let mut add_error = |message: String| {
                errors.push(ErrorDetail::new(format!("vouchers[{index}]"), message));
            };
            match policy.parse_row(&voucher.fields()) {
                Ok(row) if Expiry::from_date(row.expiry) < not_before => {
                    add_error(format!("must be valid for at least {days} days for this order"));
                }
                Ok(row) => rows.push(row),
                Err(reason) => add_error(reason.to_string()),
            }
        }
        if errors.is_empty() {
            Ok(rows)
        } else {
            Err(InvalidRequest::fields(errors))
        }
    }
}

impl VoucherRequest {
    /// A voucher of a list.
    #[must_use]
    pub fn new(fields: &VoucherFields<'_>) -> Self {
        let text = |text: &str| SecretText::from(text.to_owned());
        let VoucherFields { parts, expiry } = *fields;
        Self {
            code: text(parts.code),
            pin: parts.pin.map(text),
            serial: parts.serial.map(text),
            url: parts.url.map(text),
            expiry: expiry.map(text),
        }
    }

    fn fields(&self) -> VoucherFields<'_> {
        let texts = [&self.pin, &self.serial, &self.url, &self.expiry];
        let [pin, serial, url, expiry] = texts.map(|text| text.as_ref().map(SecretText::expose));
        VoucherFields {
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
