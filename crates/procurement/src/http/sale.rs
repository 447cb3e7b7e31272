//! Parsing and validation of a purchase response.
//!
//! The vouchers of a response are accepted all or none. The error of an invalid response names the voucher
//! and the field, never their content.

use std::borrow::Cow;
use std::collections::HashSet;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::error::Category;
use time::Date;
use vouchsafe_domain::iso_date;
use vouchsafe_domain::money::{AmountText, Currency};
use vouchsafe_domain::purchase::{BuyRequest, PurchaseKey, VendorReference};
use vouchsafe_security::vault::code::{CodePart, CodeParts, VoucherCode};
use vouchsafe_wire::json::{self, JsonObject};
use vouchsafe_wire::operator::stock::spreadsheet::Damage;

use crate::{FailureReason, InvalidResponse, PurchaseResult, Shortfall, VendorFailure, VendorVoucher};

/// A purchase as in the protocol. Unknown fields are ignored.
#[derive(Deserialize)]
struct SaleBody<'a> {
    purchase_id: PurchaseKey,
    #[serde(deserialize_with = "json::enum_value")]
    status: SaleStatus,
    #[serde(borrow)]
    vouchers: Vec<JsonObject<VoucherBody<'a>>>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum SaleStatus {
    Pending,
    Completed,
}

#[derive(Deserialize)]
struct VoucherBody<'a> {
    #[serde(borrow)]
    reference: Cow<'a, str>,
    #[serde(borrow)]
    product_id: Cow<'a, str>,
    denomination: AmountText,
    currency: Currency,
    price: AmountText,
    #[serde(borrow, default)]
    expiry: Option<Cow<'a, str>>,
    #[serde(borrow)]
    code: Cow<'a, str>,
    #[serde(borrow, default)]
    pin: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    serial: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    url: Option<Cow<'a, str>>,
}

pub(super) fn parse_sale(
    body: &[u8],
    request: &BuyRequest,
    today: Date,
) -> Result<PurchaseResult, VendorFailure> {
    let JsonObject(sale): JsonObject<SaleBody<'_>> = parse_json(body)?;
    if sale.purchase_id != request.key {
        return Err(InvalidResponse::OtherPurchase.into());
    }
    let (asked, got) = (request.quantity, sale.vouchers.len());
    let missing = usize::try_from(asked).unwrap_or(usize::MAX).checked_sub(got);
    let missing = missing.ok_or(InvalidResponse::TooMany { asked, got })?;
    let sold = sale.vouchers.iter().enumerate();
    let vouchers = sold
        .map(|(index, JsonObject(sold))| sold.validate(index, request, today))
        .collect::<Result<Vec<_>, _>>()?;
    check_distinct(&vouchers)?;
    let shortfall = match (missing, sale.status) {
        (0, _) => Shortfall::None,
        (_, SaleStatus::Pending) => Shortfall::Pending(None),
        (_, SaleStatus::Completed) if got == 0 => {
            return Err(VendorFailure::NotBought(FailureReason::NotSold));
        }
        (_, SaleStatus::Completed) => Shortfall::Final,
    };
    Ok(PurchaseResult { vouchers, shortfall })
}

/// Parses JSON of this type. The parser's own messages are dropped: they quote the content.
pub(super) fn parse_json<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, InvalidResponse> {
    let whole_body = || InvalidResponse::Schema {
        field: "the response".to_owned(),
    };
    // Invalid JSON has no field to name.
    serde_json::from_slice::<IgnoredAny>(body).map_err(|_| whole_body())?;
    let mut reader = serde_json::Deserializer::from_slice(body);
    serde_path_to_error::deserialize(&mut reader).map_err(|error| match error.inner().classify() {
        Category::Data if error.path().iter().len() > 0 => InvalidResponse::Schema {
            field: error.path().to_string(),
        },
        _ => whole_body(),
    })
}

/// No reference and no pair of code and PIN occurs twice.
fn check_distinct(vouchers: &[VendorVoucher]) -> Result<(), InvalidResponse> {
    let (mut references, mut codes) = (HashSet::new(), HashSet::new());
    for (index, voucher) in vouchers.iter().enumerate() {
        if !references.insert(&voucher.reference) {
            return Err(InvalidResponse::RepeatedReference { index });
        }
        if !codes.insert((
            part_text(&voucher.code, CodePart::Code),
            part_text(&voucher.code, CodePart::Pin),
        )) {
            return Err(InvalidResponse::RepeatedCode { index });
        }
    }
    Ok(())
}

/// The text of a part; empty if absent.
fn part_text(code: &VoucherCode, part_name: CodePart) -> &str {
    let mut parts = code.parts();
    parts
        .find_map(|(part, text)| (part == part_name).then_some(text))
        .unwrap_or_default()
}

impl VoucherBody<'_> {
    fn validate(
        &self,
        index: usize,
        request: &BuyRequest,
        today: Date,
    ) -> Result<VendorVoucher, InvalidResponse> {
        let schema_error = |name: &str| InvalidResponse::Schema {
            field: format!("vouchers[{index}].{name}"),
        };
        let amount = |name, text: &AmountText| text.parse(self.currency).map_err(|_| schema_error(name));
        let denomination = amount("denomination", &self.denomination)?.of(self.currency);
        if self.product_id != request.product_id.as_str() || denomination != request.denomination {
            return Err(InvalidResponse::OtherSku { index });
        }
        let price = amount("price", &self.price)?;
        if price.minor() < 0 {
            return Err(InvalidResponse::NegativePrice { index });
        }
        let code = self.code(index)?;
        let reference: VendorReference = self.reference.parse().map_err(|_| schema_error("reference"))?;
        if part_text(&code, CodePart::Code) == reference.as_str() {
            return Err(InvalidResponse::ReferenceIsCode { index });
        }
        Ok(VendorVoucher {
            reference,
            code,
            expiry: self.expiry(index, request, today)?,
            product_id: request.product_id.clone(),
            denomination,
            price: price.of(self.currency),
        })
    }

    fn code(&self, index: usize) -> Result<VoucherCode, InvalidResponse> {
        let parts = CodeParts {
            code: &self.code,
            pin: self.pin.as_deref(),
            serial: self.serial.as_deref(),
            url: self.url.as_deref(),
        };
        // Only what is no code of any brand: unlike an import, no operator can confirm that the codes look
        // so.
        let texts = [Some(parts.code), parts.pin];
        let damaged = texts.into_iter().flatten().filter_map(Damage::find);
        if let Some(damage) = damaged.into_iter().find(|damage| damage.is_certain()) {
            return Err(InvalidResponse::Damaged { index, damage });
        }
        VoucherCode::parse(parts).map_err(|error| InvalidResponse::Code { index, error })
    }

    fn expiry(
        &self,
        index: usize,
        request: &BuyRequest,
        today: Date,
    ) -> Result<Option<Date>, InvalidResponse> {
        let schema_error = || InvalidResponse::Schema {
            field: format!("vouchers[{index}].expiry"),
        };
        let expiry = match &self.expiry {
            Some(text) => Some(iso_date::parse_date(text).ok_or_else(schema_error)?),
            None => request.last_valid_day(),
        };
        match expiry {
            Some(on) if on < today => Err(InvalidResponse::Expired { index, on }),
            expiry => Ok(expiry),
        }
    }
}

#[cfg(test)]
mod tests;
