//! What does the peer answer to an order? One text for POST and GET, put together from its head, its vouchers and its
//! tail: the stored function knows the vouchers before this code does, and writes them in between.

use serde::Serialize;
use time::format_description::BorrowedFormatItem;
use time::macros::format_description;
use time::{Date, OffsetDateTime};
use uuid::Uuid;

use super::request::Line;

/// RFC 3339 to the microsecond, as the database keeps it.
const TIMESTAMP: &[BorrowedFormatItem<'_>] =
    format_description!("[year]-[month]-[day]T[hour]:[minute]:[second].[subsecond digits:6]Z");
const DATE: &[BorrowedFormatItem<'_>] = format_description!("[year]-[month]-[day]");

/// A delivered order, but for its vouchers.
#[derive(Clone, Copy, Debug)]
pub struct DeliveredOrder<'a> {
    pub order_id: Uuid,
    pub currency: &'a str,
    pub total: i64,
    /// The partner's own name for it.
    pub reference: Option<&'a str>,
    /// A JSON object as it was spelled.
    pub metadata: Option<&'a str>,
    pub lines: &'a [Line],
    /// When, in UTC and whole microseconds.
    pub at: OffsetDateTime,
}

/// A voucher of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SoldVoucher {
    pub voucher_id: Uuid,
    /// The line it belongs to, from 0.
    pub line: usize,
    /// The last valid day.
    pub expiry: Date,
}

impl DeliveredOrder<'_> {
    /// Everything before the vouchers.
    #[must_use]
    pub fn head(&self) -> String {
        let items: Vec<String> = self.lines.iter().map(item).collect();
        format!(
            r#"{{"order_id":"ord_{}","status":"DELIVERED","total_amount":{},"currency":{},"fulfilled_from":"cache","reference":{},"metadata":{},"items":[{}],"vouchers":["#,
            self.order_id.simple(),
            format_amount(self.total),
            json(self.currency),
            json(&self.reference),
            self.metadata.unwrap_or("{}"),
            items.join(","),
        )
    }

    /// Everything after the vouchers.
    #[must_use]
    pub fn tail(&self) -> String {
        let at = self.at.format(TIMESTAMP).unwrap_or_default();
        format!(
            r#"],"refunded_amount":0.00,"closed":true,"pending_reason":null,"timeline":[{{"status":"DELIVERED","at":"{at}","by":"system","reason":null}}],"created_at":"{at}","updated_at":"{at}"}}"#
        )
    }

    /// The whole answer.
    #[must_use]
    pub fn text(&self, vouchers: &[SoldVoucher]) -> String {
        [self.head(), self.list(vouchers), self.tail()].concat()
    }

    /// What is told of it: everything up to the vouchers, and these.
    #[must_use]
    pub fn event(&self, vouchers: &[SoldVoucher]) -> String {
        [&self.head(), &self.list(vouchers), "]}"].concat()
    }

    fn list(&self, vouchers: &[SoldVoucher]) -> String {
        let each: Vec<String> = vouchers.iter().map(|sold| self.voucher(sold)).collect();
        each.join(",")
    }

    fn voucher(&self, sold: &SoldVoucher) -> String {
        let expiry = sold.expiry.format(DATE).unwrap_or_default();
        let id = sold.voucher_id.simple();
        let product = self.lines.get(sold.line).map(voucher_product).unwrap_or_default();
        format!(r#"{{"voucher_id":"vch_{id}",{product},"expiry":"{expiry}"}}"#)
    }
}

/// The part of a voucher that all vouchers of a line share.
#[must_use]
pub fn voucher_product(line: &Line) -> String {
    let (product, denomination) = (json(&line.product_id), format_amount(line.denomination));
    format!(r#""product_id":{product},"denomination":{denomination}"#)
}

fn item(line: &Line) -> String {
    let quantity = line.quantity;
    format!(
        r#"{{{},"quantity":{quantity},"delivered":{quantity},"pending":0,"failed":0}}"#,
        voucher_product(line)
    )
}

/// 2,550 minor units are `25.50`.
#[must_use]
pub fn format_amount(minor_units: i64) -> String {
    let (sign, units) = (if minor_units < 0 { "-" } else { "" }, minor_units.unsigned_abs());
    format!("{sign}{}.{:02}", units / 100, units % 100)
}

fn json(value: &(impl Serialize + ?Sized)) -> String {
    let Ok(text) = serde_json::to_string(value) else {
        unreachable!("a text is JSON")
    };
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use time::macros::{date, datetime};

    #[test]
    fn an_answer_is_an_order_of_the_contract() {
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
            reference: Some("a\"b"),
            metadata: Some(r#"{"k": 1}"#),
            lines: &lines,
            at: datetime!(2026-01-02 03:04:05.000006 UTC),
        };
        let sold = SoldVoucher {
            voucher_id: Uuid::from_u128(2),
            line: 0,
            expiry: date!(2027 - 12 - 31),
        };
        let text = order.text(&[sold]);
        let answer: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(answer["reference"], "a\"b");
        assert_eq!(answer["metadata"]["k"], 1);
        assert_eq!(answer["created_at"], "2026-01-02T03:04:05.000006Z");
        assert_eq!(
            answer["vouchers"][0],
            serde_json::json!({
                "voucher_id": "vch_00000000000000000000000000000002",
                "product_id": "sbx-\"x",
                "denomination": 25.5,
                "expiry": "2027-12-31",
            })
        );
        let view = crate::wire::OrderView::parse(text.as_bytes()).unwrap();
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
