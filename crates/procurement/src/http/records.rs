//! Vendor records of a day, fetched page by page with one page in memory.

use std::borrow::Cow;

use reqwest::Url;
use serde::Deserialize;
use time::format_description::well_known::Rfc3339;
use time::{Date, OffsetDateTime, UtcOffset};
use vouchsafe_domain::money::{AmountText, Currency};
use vouchsafe_domain::product::ProductId;
use vouchsafe_domain::purchase::PurchaseKey;
use vouchsafe_wire::json::JsonObject;

use super::HttpVendor;
use super::sale::parse_json;
use super::status::CallKind;
use crate::limits::{MAX_RECORD_PAGES, MAX_RECORDS_PAGE};
use crate::{InvalidResponse, VendorFailure, VendorRecord};

/// The records of a day, in the vendor's order.
pub struct RecordStream<'v> {
    vendor: &'v HttpVendor,
    day: Date,
    page: std::vec::IntoIter<VendorRecord>,
    next: NextPage,
    pages: u32,
}

pub(super) enum NextPage {
    First,
    At(String),
    End,
}

#[derive(Deserialize)]
struct PageBody<'a> {
    #[serde(borrow)]
    data: Vec<JsonObject<RecordBody<'a>>>,
    #[serde(borrow, default)]
    next_cursor: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct RecordBody<'a> {
    #[serde(borrow)]
    reference: Cow<'a, str>,
    purchase_id: PurchaseKey,
    product_id: ProductId,
    denomination: AmountText,
    currency: Currency,
    #[serde(borrow)]
    sold_at: Cow<'a, str>,
}

impl<'v> RecordStream<'v> {
    pub(super) fn new(vendor: &'v HttpVendor, day: Date) -> Self {
        Self {
            vendor,
            day,
            page: Vec::new().into_iter(),
            next: NextPage::First,
            pages: 0,
        }
    }

    /// The next record; `None` after the last one.
    ///
    /// # Errors
    /// [`VendorFailure`] if a page cannot be fetched or is invalid; the next call fetches that page again.
    pub async fn next(&mut self) -> Result<Option<VendorRecord>, VendorFailure> {
        loop {
            if let Some(record) = self.page.next() {
                return Ok(Some(record));
            }
            if matches!(self.next, NextPage::End) {
                return Ok(None);
            }
            self.fetch_page().await?;
        }
    }

    async fn fetch_page(&mut self) -> Result<(), VendorFailure> {
        if self.pages == MAX_RECORD_PAGES {
            return Err(InvalidResponse::TooManyPages.into());
        }
        let call = self.vendor.client.get(self.url());
        let body = self.vendor.send(CallKind::Poll, call).await?;
        let (records, next) = parse_page(&body, self.day)?;
        if matches!((&self.next, &next), (NextPage::At(this), NextPage::At(next)) if this == next) {
            return Err(InvalidResponse::CursorLoop.into());
        }
        self.pages += 1;
        self.page = records.into_iter();
        self.next = next;
        Ok(())
    }

    fn url(&self) -> String {
        let url = self.vendor.url.join(&format!("/v1/records?date={}", self.day));
        match (&self.next, Url::parse(&url)) {
            (NextPage::At(cursor), Ok(mut url)) => {
                url.query_pairs_mut().append_pair("cursor", cursor);
                url.into()
            }
            _ => url,
        }
    }
}

pub(super) fn parse_page(body: &[u8], day: Date) -> Result<(Vec<VendorRecord>, NextPage), InvalidResponse> {
    let JsonObject(page): JsonObject<PageBody<'_>> = parse_json(body)?;
    if page.data.len() > MAX_RECORDS_PAGE {
        return Err(InvalidResponse::PageTooLong);
    }
    let entries = page.data.iter().enumerate();
    let records = entries
        .map(|(index, JsonObject(entry))| entry.validate(index, day))
        .collect::<Result<_, _>>()?;
    let next = page
        .next_cursor
        .map_or(NextPage::End, |cursor| NextPage::At(cursor.into_owned()));
    Ok((records, next))
}

impl RecordBody<'_> {
    fn validate(&self, index: usize, day: Date) -> Result<VendorRecord, InvalidResponse> {
        let schema_error = |name: &str| InvalidResponse::Schema {
            field: format!("data[{index}].{name}"),
        };
        let sold_at = OffsetDateTime::parse(&self.sold_at, &Rfc3339).map_err(|_| schema_error("sold_at"))?;
        if sold_at.to_offset(UtcOffset::UTC).date() != day {
            return Err(InvalidResponse::OtherDay { index });
        }
        let denomination = self
            .denomination
            .parse(self.currency)
            .map_err(|_| schema_error("denomination"))?;
        Ok(VendorRecord {
            reference: self.reference.parse().map_err(|_| schema_error("reference"))?,
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

    fn parse(page: &Value) -> Result<(usize, bool), InvalidResponse> {
        let (records, next) = parse_page(page.to_string().as_bytes(), date!(2026 - 11 - 20))?;
        Ok((records.len(), matches!(next, NextPage::End)))
    }

    #[test]
    fn page_is_accepted_or_rejected_as_a_whole() {
        let schema = |field: &str| {
            Err(InvalidResponse::Schema {
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
                Err(InvalidResponse::OtherDay { index: 0 }),
            ),
            (one("sold_at", json!("2026-11-20")), schema("data[0].sold_at")),
            (one("reference", json!("")), schema("data[0].reference")),
            (one("denomination", json!(25.001)), schema("data[0].denomination")),
            (one("product_id", json!("No Slug")), schema("data[0].product_id")),
            (one("purchase_id", json!(7)), schema("data[0].purchase_id")),
            (json!({ "data": 5 }), schema("data")),
            (json!([]), schema("the response")),
            (long, Err(InvalidResponse::PageTooLong)),
        ] {
            assert_eq!(parse(&page), expected, "{:.200}", page.to_string());
        }
    }
}
