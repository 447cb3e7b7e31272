//! Order responses of the peer, identical for POST and GET. They consist of head, vouchers and tail, because the
//! stored function inserts the vouchers between head and tail.

use serde::Serialize;
use time::format_description::BorrowedFormatItem;
use time::macros::format_description;
use time::{Date, OffsetDateTime};
use uuid::Uuid;

use super::request::{CURRENCY, PricedOrder};

/// RFC 3339 with microseconds, the precision of the database.
const TIMESTAMP: &[BorrowedFormatItem<'_>] =
    format_description!("[year]-[month]-[day]T[hour]:[minute]:[second].[subsecond digits:6]Z");
const DATE: &[BorrowedFormatItem<'_>] = format_description!("[year]-[month]-[day]");

/// A delivered order without its vouchers.
#[derive(Clone, Copy, Debug)]
pub(super) struct DeliveredOrder<'a> {
    pub(super) order_id: Uuid,
    pub(super) product_id: &'a str,
    pub(super) order: PricedOrder,
    /// Creation time in UTC, in whole microseconds.
    pub(super) at: OffsetDateTime,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SoldVoucher {
    pub(super) voucher_id: Uuid,
    pub(super) expiry: Date,
}

impl DeliveredOrder<'_> {
    /// Response text before the vouchers.
    pub(super) fn head(&self) -> String {
        let PricedOrder { quantity, total, .. } = self.order;
        format!(
            r#"{{"order_id":"ord_{}","status":"DELIVERED","total_amount":{},"currency":"{CURRENCY}","fulfilled_from":"cache","reference":null,"metadata":{{}},"items":[{{{},"quantity":{quantity},"delivered":{quantity},"pending":0,"failed":0}}],"vouchers":["#,
            self.order_id.simple(),
            format_amount(total),
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
        let (product, denomination) = (to_json(self.product_id), format_amount(self.order.denomination));
        format!(r#""product_id":{product},"denomination":{denomination}"#)
    }

    fn voucher_list(&self, vouchers: &[SoldVoucher]) -> String {
        let product = self.voucher_product();
        let voucher_json = |sold: &SoldVoucher| {
            let expiry = sold.expiry.format(DATE).unwrap_or_default();
            let id = sold.voucher_id.simple();
            format!(r#"{{"voucher_id":"vch_{id}",{product},"expiry":"{expiry}","first_retrieved_at":null}}"#)
        };
        let items: Vec<String> = vouchers.iter().map(voucher_json).collect();
        items.join(",")
    }
}

/// Formats 2,550 minor units as `25.50`.
pub(super) fn format_amount(minor_units: i64) -> String {
    format!("{}.{:02}", minor_units / 100, minor_units % 100)
}

fn to_json(value: &(impl Serialize + ?Sized)) -> String {
    let Ok(text) = serde_json::to_string(value) else {
        unreachable!("strings serialize to JSON")
    };
    text
}

#[cfg(test)]
mod tests {
    use time::macros::{date, datetime};

    use super::*;

    #[test]
    fn response_is_a_valid_order() {
        let order = DeliveredOrder {
            order_id: Uuid::from_u128(1),
            product_id: "sbx-\"x",
            order: PricedOrder {
                quantity: 1,
                denomination: 2_550,
                total: 2_550,
            },
            at: datetime!(2026-01-02 03:04:05.000006 UTC),
        };
        let sold = SoldVoucher {
            voucher_id: Uuid::from_u128(2),
            expiry: date!(2027 - 12 - 31),
        };
        let text = order.text(&[sold]);
        let response: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(response["created_at"], "2026-01-02T03:04:05.000006Z");
        assert_eq!(
            response["vouchers"][0],
            serde_json::json!({
                "voucher_id": "vch_00000000000000000000000000000002",
                "product_id": "sbx-\"x",
                "denomination": 25.5,
                "expiry": "2027-12-31",
                "first_retrieved_at": null,
            })
        );
        let view = vouchsafe_api_client::wire::OrderView::parse(text.as_bytes()).unwrap();
        assert_eq!(view.total_amount.get(), "25.50");
        serde_json::from_str::<serde_json::Value>(&order.event(&[sold])).unwrap();
    }
}
