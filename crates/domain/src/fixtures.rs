//! Builders of test data: partners, SKUs, priced orders, payouts, audit entries.
//!
//! Ids derive from names, so a test writes the same bytes in every run.

// Test support: a failed unwrap is a failed test, and its line says where.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use bytes::Bytes;
use sha2::{Digest, Sha256};
use time::macros::{date, datetime};
use time::{Duration, OffsetDateTime};
use uuid::Uuid;

use super::audit_log::{AuditActor, AuditRow};
use super::idempotency::{Fingerprint, KeyHash, Response};
use super::ids::{OrderId, PartnerId, PayoutId, TransactionId};
use super::ledger::WalletKey;
use super::money::{Amount, Currency};
use super::order::{Actor, Fulfilment, PricedLine, PricedOrder};
use super::payout::{Payout, PayoutDestination, PayoutMilestone, PayoutStatus};
use super::product::{ApprovalPolicy, Product, Sku, SupplyRoute};
use super::voucher::Expiry;

/// Timestamp of everything that a test creates.
pub const NOW: OffsetDateTime = datetime!(2030-01-01 12:00 UTC);

/// Audit entry with this number.
#[must_use]
pub fn audit_entry(audit_id: i64) -> AuditRow {
    AuditRow {
        audit_id,
        at: NOW,
        operator: "admin".to_owned(),
        action: "partner.change".to_owned(),
        subject: "x".to_owned(),
        before: None,
        after: Some(r#"{"a": 1}"#.to_owned()),
        trace_id: None,
        partner_id: None,
    }
}

/// Partner id with this number.
#[must_use]
pub const fn partner(number: u64) -> PartnerId {
    PartnerId::from_uuid(Uuid::from_u128(number as u128))
}

/// SKU with a face value in minor units.
#[must_use]
pub fn sku(product_id: &str, denomination: i64) -> Sku {
    Sku {
        product_id: product_id.parse().unwrap(),
        denomination: minor(denomination),
    }
}

/// Product that is sold from stock, in USD at 10.00 and 25.00.
#[must_use]
pub fn product(product_id: &str) -> Product {
    Product {
        brand: "brand".to_owned(),
        category_id: "gifts".to_owned(),
        vendor: "vendor".to_owned(),
        denominations: [1_000, 2_500].map(|value| minor(value).of(usd())).to_vec(),
        ..Product::new(product_id.parse().unwrap(), usd(), NOW)
    }
}

#[must_use]
pub fn usd() -> Currency {
    "USD".parse().unwrap()
}

/// A partner's USD wallet.
#[must_use]
pub fn usd_wallet(partner_id: PartnerId) -> WalletKey {
    WalletKey {
        partner_id,
        currency: usd(),
    }
}

/// Amount in minor units.
#[must_use]
pub const fn minor(amount: i64) -> Amount {
    Amount::from_minor(amount)
}

/// Expiry date, in days after 2031-01-01.
#[must_use]
pub fn day(number: i64) -> Expiry {
    Expiry::on(date!(2031 - 01 - 01) + Duration::days(number))
}

/// Idempotency key derived from a name.
#[must_use]
pub fn key(name: &str) -> KeyHash {
    KeyHash(uuid("key", name))
}

/// Request fingerprint derived from a name.
#[must_use]
pub fn fingerprint(name: &str) -> Fingerprint {
    Fingerprint(Sha256::digest(name).into())
}

/// Response with status 201 and this body.
#[must_use]
pub fn response(body: &str) -> Response {
    Response {
        status: 201,
        body: Bytes::copy_from_slice(body.as_bytes()),
    }
}

/// Order id derived from a record's name, with the time part of [`NOW`].
#[must_use]
pub fn order_id(name: &str) -> OrderId {
    let (time, name) = (OrderId::lower_bound_at(NOW).as_uuid(), uuid("order", name));
    let below_the_time = (1 << 62) - 1;
    OrderId::from_uuid(Uuid::from_u128(
        time.as_u128() | (name.as_u128() & below_the_time),
    ))
}

/// Ledger transaction id derived from a record's name.
#[must_use]
pub fn transaction_id(name: &str) -> TransactionId {
    TransactionId::from_uuid(uuid("transaction", name))
}

/// Priced order in which each voucher costs its denomination.
#[must_use]
pub fn priced_order(lines: &[(&Sku, u32)]) -> PricedOrder {
    let total = lines
        .iter()
        .map(|(sku, quantity)| sku.denomination.minor() * i64::from(*quantity))
        .sum();
    PricedOrder {
        lines: lines.iter().map(|(sku, quantity)| line(sku, *quantity)).collect(),
        total: minor(total).of(usd()),
        fulfilment: Fulfilment::Auto,
        reference: Some("PO-17".to_owned()),
        metadata: Some(Arc::from(r#"{"shop":"3"}"#)),
    }
}

/// Priced order with a line of vouchers at 5.00 for each quantity.
#[must_use]
pub fn priced_lines(quantities: &[u32]) -> PricedOrder {
    let skus: Vec<Sku> = (0..quantities.len())
        .map(|index| sku(&format!("p{index}"), 500))
        .collect();
    let lines: Vec<_> = skus.iter().zip(quantities.iter().copied()).collect();
    priced_order(&lines)
}

fn line(sku: &Sku, quantity: u32) -> PricedLine {
    PricedLine {
        sku: sku.clone(),
        quantity,
        unit_price: sku.denomination,
        route: SupplyRoute::Vendor,
        min_validity_days: 0,
        approval: ApprovalPolicy::Rule,
    }
}

/// Pending payout whose id derives from `name`.
#[must_use]
pub fn payout(wallet: WalletKey, name: &str, amount: i64) -> Payout {
    Payout {
        payout_id: PayoutId::from_uuid(uuid("payout", name)),
        partner_id: wallet.partner_id,
        status: PayoutStatus::Pending,
        money: minor(amount).of(wallet.currency),
        destination: PayoutDestination {
            masked: r#"{"type":"bank_account","iban":"••••3000"}"#.into(),
            sealed: Bytes::from_static(b"\x00\xffsealed"),
        },
        reference: Some(name.to_owned()),
        timeline: vec![PayoutMilestone {
            status: PayoutStatus::Pending,
            at: NOW,
            by: Actor::Partner,
            reason: None,
            reference: None,
        }],
        created_at: NOW,
        updated_at: NOW,
    }
}

#[must_use]
pub fn operator() -> AuditActor {
    AuditActor {
        operator: "somebody".to_owned(),
        trace_id: None,
    }
}

/// Id derived from a name within the namespace `kind`.
#[must_use]
pub fn uuid(kind: &str, name: &str) -> Uuid {
    let digest = Sha256::digest(format!("{kind}/{name}"));
    Uuid::from_slice(&digest[..16]).unwrap()
}
