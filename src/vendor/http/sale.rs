//! What did the vendor sell? Its answer, held against what was asked for.
//!
//! Rule: the vouchers of an answer are taken all or none. What an operator sees of a refused answer is which voucher and
//! which field, never what stood there.

use std::borrow::Cow;
use std::collections::HashSet;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::error::Category;
use time::Date;
use vouchsafe_actors::domain::money::{AmountText, Currency};

use crate::day;
use crate::json::{self, Object};
use crate::vault::code::{CodeParts, Part, VoucherCode};
use crate::vendor::{
    Bought, BuyRequest, Failure, Nonsense, PurchaseKey, Rest, VendorReference, VendorVoucher, Why,
};

/// A purchase as the protocol says it. Fields that are not known are passed over.
#[derive(Deserialize)]
struct Sale<'a> {
    purchase_id: PurchaseKey,
    #[serde(deserialize_with = "json::word")]
    status: Status,
    #[serde(borrow)]
    vouchers: Vec<Object<Sold<'a>>>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Status {
    Pending,
    Completed,
}

#[derive(Deserialize)]
struct Sold<'a> {
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

/// What was sold.
pub(super) fn read(answer: &[u8], request: &BuyRequest, today: Date) -> Result<Bought, Failure> {
    let Object(sale): Object<Sale<'_>> = parse(answer)?;
    if sale.purchase_id != request.key {
        return Err(Nonsense::OtherPurchase.into());
    }
    let (asked, got) = (request.quantity, sale.vouchers.len());
    let missing = usize::try_from(asked).unwrap_or(usize::MAX).checked_sub(got);
    let missing = missing.ok_or(Nonsense::TooMany { asked, got })?;
    let sold = sale.vouchers.iter().enumerate();
    let vouchers = sold
        .map(|(index, Object(sold))| sold.checked(index, request, today))
        .collect::<Result<Vec<_>, _>>()?;
    distinct(&vouchers)?;
    let rest = match (missing, sale.status) {
        (0, _) => Rest::None,
        (_, Status::Pending) => Rest::ToCome(None),
        (_, Status::Completed) if got == 0 => return Err(Failure::NotBought(Why::Unsold)),
        (_, Status::Completed) => Rest::Never,
    };
    Ok(Bought { vouchers, rest })
}

/// Reads JSON of this form. The parser's own words are not passed on: they quote what stood there.
pub(super) fn parse<'a, T: Deserialize<'a>>(answer: &'a [u8]) -> Result<T, Nonsense> {
    let whole = || Nonsense::Schema {
        field: "the answer".to_owned(),
    };
    // What is no JSON at all has no fields to name.
    serde_json::from_slice::<IgnoredAny>(answer).map_err(|_| whole())?;
    let mut reader = serde_json::Deserializer::from_slice(answer);
    serde_path_to_error::deserialize(&mut reader).map_err(|error| match error.inner().classify() {
        Category::Data if error.path().iter().len() > 0 => Nonsense::Schema {
            field: error.path().to_string(),
        },
        _ => whole(),
    })
}

/// No voucher comes twice, by its name or by what is redeemed.
fn distinct(vouchers: &[VendorVoucher]) -> Result<(), Nonsense> {
    let (mut references, mut codes) = (HashSet::new(), HashSet::new());
    for (index, voucher) in vouchers.iter().enumerate() {
        if !references.insert(&voucher.reference) {
            return Err(Nonsense::RepeatedReference { index });
        }
        if !codes.insert((part(&voucher.code, Part::Code), part(&voucher.code, Part::Pin))) {
            return Err(Nonsense::RepeatedCode { index });
        }
    }
    Ok(())
}

/// The text of a part; empty if there is none.
fn part(code: &VoucherCode, wanted: Part) -> &str {
    let mut parts = code.credentials();
    parts
        .find_map(|(part, text)| (part == wanted).then_some(text))
        .unwrap_or_default()
}

impl Sold<'_> {
    fn checked(&self, index: usize, request: &BuyRequest, today: Date) -> Result<VendorVoucher, Nonsense> {
        let wrong = |name: &str| Nonsense::Schema {
            field: format!("vouchers[{index}].{name}"),
        };
        let amount = |name, text: &AmountText| text.parse(self.currency).map_err(|_| wrong(name));
        let denomination = amount("denomination", &self.denomination)?.of(self.currency);
        if self.product_id != request.product_id.as_str() || denomination != request.denomination {
            return Err(Nonsense::OtherSku { index });
        }
        let price = amount("price", &self.price)?;
        if price.minor() < 0 {
            return Err(Nonsense::NegativePrice { index });
        }
        let code = self.code(index)?;
        if part(&code, Part::Code) == self.reference {
            return Err(Nonsense::CodeForReference { index });
        }
        let reference: VendorReference = self.reference.parse().map_err(|_| wrong("reference"))?;
        Ok(VendorVoucher {
            reference,
            code,
            expiry: self.expiry(index, request, today)?,
            product_id: request.product_id.clone(),
            denomination,
            price: price.of(self.currency),
        })
    }

    fn code(&self, index: usize) -> Result<VoucherCode, Nonsense> {
        let parts = CodeParts {
            code: &self.code,
            pin: self.pin.as_deref(),
            serial: self.serial.as_deref(),
            url: self.url.as_deref(),
        };
        VoucherCode::parse(parts).map_err(|error| Nonsense::Code { index, error })
    }

    fn expiry(&self, index: usize, request: &BuyRequest, today: Date) -> Result<Option<Date>, Nonsense> {
        let wrong = || Nonsense::Schema {
            field: format!("vouchers[{index}].expiry"),
        };
        let expiry = match &self.expiry {
            Some(text) => Some(day::parse(text).ok_or_else(wrong)?),
            None => request.last_valid_day(),
        };
        match expiry {
            Some(on) if on < today => Err(Nonsense::Expired { index, on }),
            expiry => Ok(expiry),
        }
    }
}

#[cfg(test)]
mod tests;
