//! Fake vouchers of the simulator, deterministic by key, and their records.

use serde::Serialize;
use sha2::{Digest as _, Sha256};
use time::OffsetDateTime;
use vouchsafe_domain::money::{Amount, Currency, Money};
use vouchsafe_domain::purchase::PurchaseKey;

use super::faults::Fault;

const CODE_BYTES: usize = 8;

/// Expiry of ordinary and of expired vouchers.
const EXPIRY: (&str, &str) = ("2099-12-31", "2001-01-01");

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PurchaseRequest {
    pub(super) key: PurchaseKey,
    pub(super) product_id: String,
    pub(super) denomination: Money,
    pub(super) quantity: u32,
}

/// A voucher as in the protocol.
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

/// A record as in the protocol.
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
pub(super) fn issue_voucher(request: &PurchaseRequest, number: u32) -> SoldVoucher {
    let digest = Sha256::new()
        .chain_update(request.key.0.as_bytes())
        .chain_update(number.to_be_bytes())
        .finalize();
    SoldVoucher {
        reference: format!("sim-{}-{number}", request.key.0.as_simple()),
        product_id: request.product_id.clone(),
        denomination: request.denomination,
        currency: request.denomination.currency,
        price: request.denomination,
        expiry: EXPIRY.0,
        code: format!("SIMULATED-{}", hex::encode_upper(&digest[..CODE_BYTES])),
        pin: "0000",
    }
}

/// Changes the vouchers of a sale according to its faults. `earlier` is a code sold before.
pub(super) fn apply_faults(sold: &mut [SoldVoucher], faults: &[Fault], earlier: Option<&str>) {
    let second = sold.get(1).map(|voucher| voucher.code.clone());
    let Some(first) = sold.first_mut() else {
        return;
    };
    for fault in faults {
        match fault {
            Fault::RepeatCode => first.code = earlier.unwrap_or(&first.code).to_owned(),
            Fault::OtherPin => {
                first.code = earlier.unwrap_or(&first.code).to_owned();
                first.pin = "1111";
            }
            Fault::SameCode => first.code = second.as_ref().unwrap_or(&first.code).clone(),
            Fault::OtherSku => first.product_id.push_str("-other"),
            Fault::Expired => first.expiry = EXPIRY.1,
            Fault::NegativePrice => first.price.amount = Amount::from_minor(-1),
            _ => {}
        }
    }
}

/// The records of a sale, changed by its faults.
pub(super) fn records_of_sale(
    request: &PurchaseRequest,
    sold: &[SoldVoucher],
    faults: &[Fault],
    at: OffsetDateTime,
) -> Vec<Record> {
    let record = |voucher: &SoldVoucher| Record {
        reference: voucher.reference.clone(),
        purchase_id: request.key,
        product_id: request.product_id.clone(),
        denomination: request.denomination,
        currency: request.denomination.currency,
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
