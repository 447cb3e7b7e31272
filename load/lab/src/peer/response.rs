//! Order responses of the peer, identical for POST and GET. They consist of head, vouchers and tail, because the
//! stored function inserts the vouchers between head and tail.

use serde::Serialize;
use time::format_description::BorrowedFormatItem;
use time::macros::format_description;
use time::{Date, OffsetDateTime};
use uuid::Uuid;

use super::request::Line;

/// RFC 3339 with microseconds, the precision of the database.
const TIMESTAMP: &[BorrowedFormatItem<'_>] =
    format_description!("[year]-[month]-[day]T[hour]:[minute]:[second].[subsecond digits:6]Z");
const DATE: &[BorrowedFormatItem<'_>] = format_description!("[year]-[month]-[day]");

/// A delivered order without its vouchers.
#[derive(Clone, Copy, Debug)]
pub(super) struct DeliveredOrder<'a> {
    pub(super) order_id: Uuid,
    pub(super) currency: &'a str,
    pub(super) total: i64,
    pub(super) lines: &'a [Line],
    /// Creation time in UTC, in whole microseconds.
    pub(super) at: OffsetDateTime,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SoldVoucher {
    pub(super) voucher_id: Uuid,
    /// Line index, from 0.
    pub(super) line: usize,
    pub(super) expiry: Date,
}

impl DeliveredOrder<'_> {
    /// Response text before the vouchers.
    pub(super) fn head(&self) -> String {
        let items: Vec<String> = self.lines.iter().map(item_json).collect();
        format!(
            r#"{{"order_id":"ord_{}","status":"DELIVERED","total_amount":{},"currency":{},"fulfilled_from":"cache","reference":null,"metadata":{{}},"items":[{}],"vouchers":["#,
            self.order_id.simple(),
            format_amount(self.total),
            to_json(self.currency),
            items.join(","),
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

    fn voucher_list(&self, vouchers: &[SoldVoucher]) -> String {
        let items: Vec<String> = vouchers.iter().map(|sold| self.voucher_json(sold)).collect();
        items.join(",")
    }

    fn voucher_json(&self, sold: &SoldVoucher) -> String {
        let expiry = sold.expiry.format(DATE).unwrap_or_default();
        let id = sold.voucher_id.simple();
        let product = self.lines.get(sold.line).map(voucher_product).unwrap_or_default();
        format!(r#"{{"voucher_id":"vch_{id}",{product},"expiry":"{expiry}"}}"#)
    }
}

/// Product fields, which all vouchers of a line share.
pub(super) fn voucher_product(line: &Line) -> String {
    let (product, denomination) = (to_json(&line.product_id), format_amount(line.denomination));
    format!(r#""product_id":{product},"denomination":{denomination}"#)
}

fn item_json(line: &Line) -> String {
    let quantity = line.quantity;
    format!(
        r#"{{{},"quantity":{quantity},"delivered":{quantity},"pending":0,"failed":0}}"#,
        voucher_product(line)
    )
}

/// Formats 2,550 minor units as `25.50`.
pub(super) fn format_amount(minor_units: i64) -> String {
    let (sign, units) = (if minor_units < 0 { "-" } else { "" }, minor_units.unsigned_abs());
    format!("{sign}{}.{:02}", units / 100, units % 100)
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
        let lines = [Line {
            sku_id: 1,
            product_id: "sbx-\"x".to_owned(),
            denomination: 2_550,
            quantity: 1,
        }];
        let order = DeliveredOrder {
            order_id: Uuid::from_u128(1),
            currency: "USD",
            total: 2_550,
            lines: &lines,
            at: datetime!(2026-01-02 03:04:05.000006 UTC),
        };
        let sold = SoldVoucher {
            voucher_id: Uuid::from_u128(2),
            line: 0,
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
            })
        );
        let view = vouchsafe_api_client::wire::OrderView::parse(text.as_bytes()).unwrap();
        assert_eq!(view.total_amount.get(), "25.50");
        serde_json::from_str::<serde_json::Value>(&order.event(&[sold])).unwrap();
    }

    #[test]
    fn amounts_have_two_decimals() {
        for (units, text) in [(5, "0.05"), (2_500, "25.00"), (-1_050, "-10.50"), (0, "0.00")] {
            assert_eq!(format_amount(units), text);
        }
    }
}
