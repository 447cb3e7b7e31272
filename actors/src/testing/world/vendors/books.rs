//! The books of what is bought, ours and the vendors'.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use time::OffsetDateTime;
use tokio::time::Instant;
use uuid::Uuid;

use super::trouble::{Trouble, Troubles};
use super::vendor_of;
use crate::domain::ids::OrderId;
use crate::domain::order::{Order, Source};
use crate::domain::product::Sku;
use crate::flows::Delivery;
use crate::procurement::{ClaimedPurchase, Due, Rest, VendorId};

/// How long a claim lasts that is not given back.
const CLAIM: Duration = Duration::from_secs(120);

/// How long a vendor is believed that it has none.
const BELIEVED: Duration = Duration::from_secs(30);

/// A purchase, as we have it.
struct Row {
    delivery: Delivery,
    sku: Sku,
    quantity: u32,
    requested_at: OffsetDateTime,
    asked: bool,
    ended: bool,
    next_at: Instant,
    claimed: Option<(&'static str, Instant)>,
    /// How many were taken in.
    taken: u32,
}

/// A sale, as the vendor has it.
#[derive(Default)]
struct Sale {
    sold: u32,
    /// It sells no more under this key.
    over: bool,
}

/// All books.
#[derive(Default)]
pub(super) struct Books {
    purchases: BTreeMap<Uuid, Row>,
    sales: BTreeMap<Uuid, Sale>,
    without: Vec<(Sku, Instant)>,
    pub(super) trouble: Troubles,
    /// How many are being asked about, and how many that were at most.
    pub(super) at_once: usize,
    pub(super) most_at_once: usize,
}

impl Row {
    fn is_free(&self, now: Instant) -> bool {
        !self.ended && self.next_at <= now && self.claimed.is_none_or(|(_, until)| until <= now)
    }
}

impl Books {
    pub(super) fn open(&mut self, order: &Order, line: u16, sku: Sku, quantity: u32, at: OffsetDateTime) {
        let of_line = |row: &Row| row.delivery.order_id == order.order_id && row.delivery.line == line;
        if self.purchases.values().any(of_line) {
            return;
        }
        let purchase_id = Uuid::from_u128(self.purchases.len() as u128 + 1);
        let row = Row {
            delivery: Delivery {
                kept_id: purchase_id,
                source: Source::Vendor,
                partner_id: order.partner_id,
                order_id: order.order_id,
                line,
            },
            sku,
            quantity,
            requested_at: at,
            asked: false,
            ended: false,
            next_at: Instant::now(),
            claimed: None,
            taken: 0,
        };
        self.purchases.insert(purchase_id, row);
    }

    pub(super) fn open_of(&self, order_id: OrderId) -> Vec<(u16, Uuid)> {
        let rows = self.purchases.iter();
        rows.filter(|(_, row)| row.delivery.order_id == order_id && !row.ended)
            .map(|(purchase_id, row)| (row.delivery.line, *purchase_id))
            .collect()
    }

    pub(super) fn was_bought(&self, order_id: OrderId) -> bool {
        self.purchases
            .values()
            .any(|row| row.delivery.order_id == order_id)
    }

    pub(super) fn goes_on(&self, purchase_id: Uuid) -> bool {
        self.purchases.get(&purchase_id).is_some_and(|row| !row.ended)
    }

    pub(super) fn due(&self, vendor_id: &VendorId, limit: usize, now: Instant) -> Vec<Due> {
        let mut of_order: BTreeMap<OrderId, usize> = BTreeMap::new();
        let rows = self.purchases.iter();
        let mut due: Vec<_> = rows
            .filter(|(_, row)| row.is_free(now) && vendor_of(&row.sku) == *vendor_id)
            .map(|(purchase_id, row)| {
                let place = of_order.entry(row.delivery.order_id).or_default();
                *place += 1;
                let due = Due {
                    purchase_id: *purchase_id,
                    order_id: row.delivery.order_id,
                };
                (*place, row.next_at, *purchase_id, due)
            })
            .collect();
        due.sort_by_key(|(place, next_at, purchase_id, _)| (*place, *next_at, *purchase_id));
        due.into_iter().map(|(.., due)| due).take(limit).collect()
    }

    pub(super) fn claim(
        &mut self,
        purchase_id: Uuid,
        node: &'static str,
        now: Instant,
    ) -> Option<ClaimedPurchase> {
        let row = self.purchases.get_mut(&purchase_id)?;
        if !row.is_free(now) {
            return None;
        }
        row.claimed = Some((node, now + CLAIM));
        Some(ClaimedPurchase {
            delivery: row.delivery,
            requested_at: row.requested_at,
            asked: std::mem::replace(&mut row.asked, true),
        })
    }

    pub(super) fn note(&mut self, purchase_id: Uuid, after: Option<Duration>, now: Instant) {
        if let Some(row) = self.purchases.get_mut(&purchase_id) {
            row.ended |= after.is_none();
            row.next_at = now + after.unwrap_or_default();
            row.claimed = None;
        }
    }

    pub(super) fn give_back(&mut self, vendor_id: &VendorId, node: &str) {
        for row in self.purchases.values_mut() {
            let own = row.claimed.is_some_and(|(by, _)| by == node);
            if own && vendor_of(&row.sku) == *vendor_id {
                row.claimed = None;
            }
        }
    }

    pub(super) fn sku_of(&self, purchase_id: Uuid) -> Sku {
        self.purchases[&purchase_id].sku.clone()
    }

    pub(super) fn out_of_stock(&mut self, now: Instant) -> Vec<Sku> {
        self.without.retain(|(_, at)| now < *at + BELIEVED);
        self.without.iter().map(|(sku, _)| sku.clone()).collect()
    }

    /// The vendor is asked once. Says what becomes of the rest, and how many vouchers came that were not there before.
    pub(super) fn sell(&mut self, purchase_id: Uuid) -> (Rest, usize) {
        if self.trouble.strikes(Trouble::Down) {
            return (Rest::ToCome(Some(Duration::from_secs(1))), 0);
        }
        let quantity = self.purchases[&purchase_id].quantity;
        let mut sale = self.sales.remove(&purchase_id).unwrap_or_default();
        if !sale.over {
            self.go_on(&mut sale, purchase_id, quantity);
        }
        let (sold, over) = (sale.sold, sale.over);
        self.sales.insert(purchase_id, sale);
        // What it sold it has sold, whatever becomes of its answer.
        let mut ways_to_lose = [Trouble::AnswerLost, Trouble::Nonsense].into_iter();
        if ways_to_lose.any(|trouble| self.trouble.strikes(trouble)) {
            return (Rest::ToCome(None), 0);
        }
        let row = self.purchases.get_mut(&purchase_id);
        let taken = row.map_or(0, |row| sold - std::mem::replace(&mut row.taken, sold));
        let rest = if over { Rest::Over } else { Rest::ToCome(None) };
        (rest, taken as usize)
    }

    fn go_on(&mut self, sale: &mut Sale, purchase_id: Uuid, quantity: u32) {
        if sale.sold == 0 && self.trouble.strikes(Trouble::OutOfStock) {
            sale.over = true;
            let sku = self.sku_of(purchase_id);
            self.without.push((sku, Instant::now()));
        } else if self.trouble.strikes(Trouble::PartForEver) {
            sale.sold = sale.sold.max(quantity / 2);
            sale.over = true;
        } else if self.trouble.strikes(Trouble::PartForNow) {
            sale.sold = sale.sold.max(quantity / 2);
        } else {
            sale.sold = quantity;
            sale.over = true;
        }
    }

    pub(super) fn wrongs(&self) -> Vec<String> {
        let mut bought = BTreeSet::new();
        let mut wrongs = Vec::new();
        for (purchase_id, sale) in &self.sales {
            let row = &self.purchases[purchase_id];
            if !bought.insert((row.delivery.order_id, row.delivery.line)) {
                wrongs.push(format!("{:?} is bought under two keys", row.delivery));
            }
            if sale.sold > row.quantity || row.taken > sale.sold {
                wrongs.push(format!(
                    "{:?}: {} of {} sold, {} taken in",
                    row.delivery, sale.sold, row.quantity, row.taken
                ));
            }
            if row.ended && row.taken < sale.sold {
                wrongs.push(format!("{:?} has ended, and was not all taken in", row.delivery));
            }
        }
        wrongs
    }

    pub(super) fn loose_ends(&self) -> Vec<String> {
        let open = self.purchases.values().filter(|row| !row.ended);
        open.map(|row| format!("{:?} goes on", row.delivery)).collect()
    }
}
