//! What does the simulator sell? Fake vouchers, the same for the same key, and the entry of each in its books.

use serde::Serialize;
use sha2::{Digest as _, Sha256};
use time::OffsetDateTime;
use vouchsafe_actors::domain::money::{Amount, Currency, Money};

use super::faults::Fault;
use super::ledger::PurchaseRequest;
use crate::procurement::PurchaseKey;

/// Bytes of a digest that a code shows.
const CODE_BYTES: usize = 8;

/// The last valid day of what is sold, and of what expired.
const EXPIRY: (&str, &str) = ("2099-12-31", "2001-01-01");

/// A voucher, as the protocol says it.
#[derive(Clone, Serialize)]
pub(super) struct SoldVoucher {
    reference: String,
    product_id: String,
    denomination: Money,
    currency: Currency,
    price: Money,
    expiry: &'static str,
    pub(super) code: String,
    pin: &'static str,
}

/// An entry of the books, as the protocol says it.
#[derive(Clone, Serialize)]
pub(super) struct Record {
    reference: String,
    purchase_id: PurchaseKey,
    product_id: String,
    denomination: Money,
    currency: Currency,
    #[serde(with = "time::serde::rfc3339")]
    pub(super) sold_at: OffsetDateTime,
}

/// The voucher with this number of a purchase.
pub(super) fn issue_voucher(wish: &PurchaseRequest, number: u32) -> SoldVoucher {
    let digest = Sha256::new()
        .chain_update(wish.key.0.as_bytes())
        .chain_update(number.to_be_bytes())
        .finalize();
    SoldVoucher {
        reference: format!("sim-{}-{number}", wish.key.0.as_simple()),
        product_id: wish.product_id.clone(),
        denomination: wish.denomination,
        currency: wish.denomination.currency,
        price: wish.denomination,
        expiry: EXPIRY.0,
        code: format!("SIMULATED-{}", hex::encode_upper(&digest[..CODE_BYTES])),
        pin: "0000",
    }
}

/// Makes of the vouchers of a sale what its faults want. `earlier` is a code that was sold before.
pub(super) fn apply_faults(sold: &mut [SoldVoucher], faults: &[Fault], earlier: Option<&str>) {
    let second = sold.get(1).map(|voucher| voucher.code.clone());
    let Some(first) = sold.first_mut() else {
        return;
    };
    for fault in faults {
        match fault {
            Fault::RepeatCode => first.code = earlier.unwrap_or(&first.code).to_owned(),
            Fault::SameCode => first.code = second.as_ref().unwrap_or(&first.code).clone(),
            Fault::OtherSku => first.product_id.push_str("-other"),
            Fault::Expired => first.expiry = EXPIRY.1,
            Fault::NegativePrice => first.price.amount = Amount::from_minor(-1),
            _ => {}
        }
    }
}

/// What the books say of a sale, as its faults want it.
pub(super) fn records_of_sale(wish: &PurchaseRequest, sold: &[SoldVoucher], faults: &[Fault], at: OffsetDateTime) -> Vec<Record> {
    let record = |voucher: &SoldVoucher| Record {
        reference: voucher.reference.clone(),
        purchase_id: wish.key,
        product_id: wish.product_id.clone(),
        denomination: wish.denomination,
        currency: wish.denomination.currency,
        sold_at: at,
    };
    let mut records: Vec<Record> = sold.iter().map(record).collect();
    let Some(first) = records.first_mut() else {
        return records;
    };
    if faults.contains(&Fault::RecordAltered) {
        let amount = first.denomination.amount;
        first.denomination.amount = amount.checked_add(amount).unwrap_or(amount);
    }
    if faults.contains(&Fault::RecordAdded) {
        let reference = format!("{}-added", first.reference);
        let added = Record {
            reference,
            ..first.clone()
        };
        records.push(added);
    }
    if faults.contains(&Fault::RecordDropped) {
        records.remove(0);
    }
    records
}
