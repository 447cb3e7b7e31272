//! An order of the peer's only product: the request, the draft that is written, and the response, identical
//! for POST and GET. The response consists of head, vouchers and tail, because the stored function inserts
//! the vouchers between head and tail.

use std::sync::Arc;

use rust_decimal::Decimal;
use serde::Deserialize;
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};
use time::format_description::BorrowedFormatItem;
use time::macros::format_description;
use time::{Date, OffsetDateTime};
use uuid::Uuid;

use super::refusal::Refusal;

/// SKU of the only product.
pub(super) const SKU_ID: i32 = 1;
pub(super) const CURRENCY: &str = "USD";
/// Denomination of the product, in minor units of [`CURRENCY`].
const DENOMINATION: i64 = 2_500;
/// Decimals of the currency.
const DECIMALS: u32 = 2;
/// Maximum vouchers per order.
const MAX_VOUCHERS: i32 = 1_000;

/// RFC 3339 with microseconds, the precision of the database.
const TIMESTAMP: &[BorrowedFormatItem<'_>] =
    format_description!("[year]-[month]-[day]T[hour]:[minute]:[second].[subsecond digits:6]Z");
const DATE: &[BorrowedFormatItem<'_>] = format_description!("[year]-[month]-[day]");

#[derive(Deserialize)]
struct OrderRequest<'a> {
    #[serde(borrow)]
    items: [Item<'a>; 1],
}

#[derive(Deserialize)]
struct Item<'a> {
    product_id: String,
    #[serde(borrow)]
    denomination: &'a RawValue,
    quantity: i32,
}

/// Parses an order of this product; returns the number of vouchers.
pub(super) fn parse_quantity(body: &[u8], product_id: &str) -> Result<i32, Refusal> {
    let invalid = |reason: String| Refusal::ValidationFailed(reason);
    let request: OrderRequest<'_> =
        serde_json::from_slice(body).map_err(|error| invalid(error.to_string()))?;
    let [item] = request.items;
    let denomination = Decimal::from_str_exact(item.denomination.get());
    let is_sold = item.product_id == product_id
        && denomination == Ok(Decimal::new(DENOMINATION, DECIMALS))
        && (1..=MAX_VOUCHERS).contains(&item.quantity);
    is_sold
        .then_some(item.quantity)
        .ok_or_else(|| invalid(format!("1 to 1,000 vouchers of {product_id} at 25 are sold")))
}

/// Idempotency key and request fingerprint.
#[derive(Clone, Debug)]
pub(super) struct IdempotencyKey {
    /// First 16 bytes of a hash of partner, endpoint and key: short and uniformly distributed.
    pub(super) hash: Uuid,
    pub(super) fingerprint: [u8; 32],
}

impl IdempotencyKey {
    /// Creates the key of a `POST` to `path`.
    pub(super) fn new(partner_id: Uuid, text: &str, path: &str, body: &[u8]) -> Self {
        let digest = |parts: [&[u8]; 3]| -> [u8; 32] {
            let hasher = parts.into_iter().fold(Sha256::new(), Digest::chain_update);
            hasher.finalize().into()
        };
        let mut hash = [0; 16];
        hash.copy_from_slice(&digest([partner_id.as_bytes(), b"orders ", text.as_bytes()])[..16]);
        Self {
            hash: Uuid::from_bytes(hash),
            fingerprint: digest([b"POST ", path.as_bytes(), body]),
        }
    }
}

/// An order that is about to be written. Its ids are assigned before the vouchers are selected.
#[derive(Clone, Debug)]
pub(super) struct OrderDraft {
    pub(super) partner_id: Uuid,
    pub(super) order_id: Uuid,
    pub(super) transaction_id: Uuid,
    /// One per voucher.
    pub(super) voucher_ids: Vec<Uuid>,
    pub(super) key: IdempotencyKey,
    pub(super) product_id: Arc<str>,
    pub(super) quantity: i32,
    pub(super) at: OffsetDateTime,
    /// Whether the partner receives webhooks.
    pub(super) has_endpoint: bool,
}

impl OrderDraft {
    pub(super) fn new(
        partner_id: Uuid,
        key: IdempotencyKey,
        product_id: Arc<str>,
        quantity: i32,
        has_endpoint: bool,
    ) -> Self {
        Self {
            partner_id,
            order_id: Uuid::now_v7(),
            transaction_id: Uuid::now_v7(),
            voucher_ids: (0..quantity).map(|_| Uuid::now_v7()).collect(),
            key,
            product_id,
            quantity,
            at: now(),
            has_endpoint,
        }
    }

    /// The order as in the response.
    pub(super) fn delivered(&self) -> DeliveredOrder<'_> {
        DeliveredOrder {
            order_id: self.order_id,
            product_id: &self.product_id,
            quantity: self.quantity,
            at: self.at,
        }
    }

    /// The order lines in the stored JSON format.
    pub(super) fn lines(&self) -> String {
        let (product_id, quantity) = (&*self.product_id, self.quantity);
        serde_json::json!([{
            "sku_id": SKU_ID, "product_id": product_id, "denomination": DENOMINATION, "quantity": quantity,
        }])
        .to_string()
    }
}

/// Current UTC time in whole microseconds, so that a response equals a later read from the database.
#[expect(
    clippy::disallowed_methods,
    reason = "the peer is a separate program; this is the only place that reads its clock"
)]
pub(super) fn now() -> OffsetDateTime {
    let now = OffsetDateTime::now_utc();
    now.replace_nanosecond(now.microsecond() * 1_000).unwrap_or(now)
}

/// A delivered order without its vouchers.
#[derive(Clone, Copy, Debug)]
pub(super) struct DeliveredOrder<'a> {
    pub(super) order_id: Uuid,
    pub(super) product_id: &'a str,
    pub(super) quantity: i32,
    /// Creation time in UTC, in whole microseconds.
    pub(super) at: OffsetDateTime,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SoldVoucher {
    pub(super) voucher_id: Uuid,
    pub(super) expiry: Date,
    pub(super) first_retrieved_at: Option<OffsetDateTime>,
}

impl DeliveredOrder<'_> {
    /// Price in minor units.
    pub(super) fn total(&self) -> i64 {
        DENOMINATION * i64::from(self.quantity)
    }

    /// Response text before the vouchers.
    pub(super) fn head(&self) -> String {
        let quantity = self.quantity;
        format!(
            r#"{{"order_id":"ord_{}","status":"DELIVERED","total_amount":{},"currency":"{CURRENCY}","fulfilled_from":"cache","reference":null,"metadata":{{}},"items":[{{{},"quantity":{quantity},"delivered":{quantity},"pending":0,"failed":0}}],"vouchers":["#,
            self.order_id.simple(),
            format_amount(self.total()),
            self.voucher_product(),
        )
    }

    /// Response text after the vouchers.
    pub(super) fn tail(&self) -> String {
        let at = self.at.format(TIMESTAMP).unwrap_or_default();
        format!(
            r#"],"refunded_amount":0.00,"closed":true,"pending_reason":null,"timeline":[{{"status":"DELIVERED","at":"{at}","by":"system","reason":null}}],"created_at":"{at}","updated_at":"{at}"}}"#
        )
    }

    /// The complete response.
    pub(super) fn text(&self, vouchers: &[SoldVoucher]) -> String {
        [self.head(), self.voucher_list(vouchers), self.tail()].concat()
    }

    /// Event body: the response without its tail.
    pub(super) fn event(&self, vouchers: &[SoldVoucher]) -> String {
        [&self.head(), &self.voucher_list(vouchers), "]}"].concat()
    }

    /// Product fields, which all vouchers share.
    pub(super) fn voucher_product(&self) -> String {
        let product = serde_json::Value::from(self.product_id);
        format!(
            r#""product_id":{product},"denomination":{}"#,
            format_amount(DENOMINATION)
        )
    }

    fn voucher_list(&self, vouchers: &[SoldVoucher]) -> String {
        let product = self.voucher_product();
        let voucher_json = |sold: &SoldVoucher| {
            let expiry = sold.expiry.format(DATE).unwrap_or_default();
            let id = sold.voucher_id.simple();
            let read_at = sold.first_retrieved_at.and_then(|at| at.format(TIMESTAMP).ok());
            let read_at = read_at.map_or_else(|| "null".to_owned(), |at| format!(r#""{at}""#));
            format!(
                r#"{{"voucher_id":"vch_{id}",{product},"expiry":"{expiry}","first_retrieved_at":{read_at}}}"#
            )
        };
        let items: Vec<String> = vouchers.iter().map(voucher_json).collect();
        items.join(",")
    }
}

/// Formats 2,550 minor units as `25.50`.
pub(super) fn format_amount(minor_units: i64) -> String {
    format!("{}.{:02}", minor_units / 100, minor_units % 100)
}

/// A stored response, returned for the first time or replayed.
pub(super) struct StoredResponse {
    pub(super) status: u16,
    pub(super) body: Vec<u8>,
    /// Whether it is a replay.
    pub(super) replayed: bool,
}
