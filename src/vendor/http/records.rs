//! What does the vendor have in its books of a day? Page by page, a page in memory at a time.

use std::borrow::Cow;

use reqwest::Url;
use serde::Deserialize;
use time::format_description::well_known::Rfc3339;
use time::{Date, OffsetDateTime, UtcOffset};
use vouchsafe_actors::domain::money::{AmountText, Currency};
use vouchsafe_actors::domain::product::ProductId;

use super::HttpVendor;
use super::sale::parse;
use super::status::Call;
use crate::json::Object;
use crate::vendor::{Failure, Nonsense, PurchaseKey, VendorRecord};

/// Most records of a page: what a page holds is in memory at once.
pub const MAX_RECORDS_PAGE: usize = 1_000;

/// Most pages of a day: a hundred million records, far from any day; a vendor whose pages do not end is noticed.
pub const MAX_RECORD_PAGES: u32 = 100_000;

/// The records of a day, one after the other, in the vendor's order.
pub struct Records<'v> {
    vendor: &'v HttpVendor,
    day: Date,
    page: std::vec::IntoIter<VendorRecord>,
    next: Next,
    pages: u32,
}

/// Where the walk stands behind the page.
enum Next {
    First,
    At(String),
    End,
}

#[derive(Deserialize)]
struct Page<'a> {
    #[serde(borrow)]
    data: Vec<Object<Entry<'a>>>,
    #[serde(borrow, default)]
    next_cursor: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct Entry<'a> {
    #[serde(borrow)]
    reference: Cow<'a, str>,
    purchase_id: PurchaseKey,
    product_id: ProductId,
    denomination: AmountText,
    currency: Currency,
    #[serde(borrow)]
    sold_at: Cow<'a, str>,
}

impl<'v> Records<'v> {
    pub(super) fn new(vendor: &'v HttpVendor, day: Date) -> Self {
        Self {
            vendor,
            day,
            page: Vec::new().into_iter(),
            next: Next::First,
            pages: 0,
        }
    }

    /// The next record; `None` behind the last one.
    ///
    /// # Errors
    /// [`Failure`] when a page cannot be had or was refused; asking again asks for that page again.
    pub async fn next(&mut self) -> Result<Option<VendorRecord>, Failure> {
        loop {
            if let Some(record) = self.page.next() {
                return Ok(Some(record));
            }
            if matches!(self.next, Next::End) {
                return Ok(None);
            }
            self.turn().await?;
        }
    }

    async fn turn(&mut self) -> Result<(), Failure> {
        if self.pages == MAX_RECORD_PAGES {
            return Err(Nonsense::Endless.into());
        }
        let call = self.vendor.client.get(self.url());
        let answer = self.vendor.exchange(Call::Ask, call).await?;
        let (records, next) = read(&answer, self.day)?;
        if matches!((&self.next, &next), (Next::At(this), Next::At(next)) if this == next) {
            return Err(Nonsense::SameCursor.into());
        }
        self.pages += 1;
        self.page = records.into_iter();
        self.next = next;
        Ok(())
    }

    fn url(&self) -> String {
        let url = self.vendor.url.at(&format!("/v1/records?date={}", self.day));
        match (&self.next, Url::parse(&url)) {
            (Next::At(cursor), Ok(mut url)) => {
                url.query_pairs_mut().append_pair("cursor", cursor);
                url.into()
            }
            _ => url,
        }
    }
}

fn read(answer: &[u8], day: Date) -> Result<(Vec<VendorRecord>, Next), Nonsense> {
    let Object(page): Object<Page<'_>> = parse(answer)?;
    if page.data.len() > MAX_RECORDS_PAGE {
        return Err(Nonsense::LongPage);
    }
    let entries = page.data.iter().enumerate();
    let records = entries
        .map(|(index, Object(entry))| entry.checked(index, day))
        .collect::<Result<_, _>>()?;
    let next = page
        .next_cursor
        .map_or(Next::End, |cursor| Next::At(cursor.into_owned()));
    Ok((records, next))
}

impl Entry<'_> {
    fn checked(&self, index: usize, day: Date) -> Result<VendorRecord, Nonsense> {
        let wrong = |name: &str| Nonsense::Schema {
            field: format!("data[{index}].{name}"),
        };
        let sold_at = OffsetDateTime::parse(&self.sold_at, &Rfc3339).map_err(|_| wrong("sold_at"))?;
        if sold_at.to_offset(UtcOffset::UTC).date() != day {
            return Err(Nonsense::OtherDay { index });
        }
        let denomination = self
            .denomination
            .parse(self.currency)
            .map_err(|_| wrong("denomination"))?;
        Ok(VendorRecord {
            reference: self.reference.parse().map_err(|_| wrong("reference"))?,
            key: self.purchase_id,
            product_id: self.product_id.clone(),
            denomination: denomination.of(self.currency),
            sold_at,
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use time::macros::date;
    use uuid::Uuid;

    use super::*;

    fn entry(field: &str, value: Value) -> Value {
        let mut entry = json!({
            "reference": "ref-1", "purchase_id": Uuid::from_u128(7), "product_id": "game-us", "denomination": 25.00,
            "currency": "USD", "sold_at": "2026-11-20T23:59:59.5Z", "colour": "red",
        });
        entry[field] = value;
        entry
    }

    fn taken(page: &Value) -> Result<(usize, bool), Nonsense> {
        let (records, next) = read(page.to_string().as_bytes(), date!(2026 - 11 - 20))?;
        Ok((records.len(), matches!(next, Next::End)))
    }

    #[test]
    fn a_page_is_taken_whole_or_refused() {
        let schema = |field: &str| {
            Err(Nonsense::Schema {
                field: field.to_owned(),
            })
        };
        let one = |field, value| json!({ "data": [entry(field, value)], "next_cursor": null });
        let long = json!({ "data": vec![entry("colour", json!(1)); MAX_RECORDS_PAGE + 1] });
        for (page, expected) in [
            (json!({ "data": [] }), Ok((0, true))),
            (json!({ "data": [], "next_cursor": "c" }), Ok((0, false))),
            (one("colour", json!("blue")), Ok((1, true))),
            (one("sold_at", json!("2026-11-21T01:00:00+02:00")), Ok((1, true))),
            (
                one("sold_at", json!("2026-11-20T23:00:00-02:00")),
                Err(Nonsense::OtherDay { index: 0 }),
            ),
            (one("sold_at", json!("2026-11-20")), schema("data[0].sold_at")),
            (one("reference", json!("")), schema("data[0].reference")),
            (one("denomination", json!(25.001)), schema("data[0].denomination")),
            (one("product_id", json!("No Slug")), schema("data[0].product_id")),
            (one("purchase_id", json!(7)), schema("data[0].purchase_id")),
            (json!({ "data": 5 }), schema("data")),
            (json!([]), schema("the answer")),
            (long, Err(Nonsense::LongPage)),
        ] {
            assert_eq!(taken(&page), expected, "{:.200}", page.to_string());
        }
    }
}
