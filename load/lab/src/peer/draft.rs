//! Order drafts: ids, price, idempotency key and time, before the database is involved.

use std::sync::Arc;

use sha2::{Digest, Sha256};
use time::OffsetDateTime;
use uuid::Uuid;

use super::refusal::Refusal;
use super::request::PricedOrder;
use super::response::DeliveredOrder;

/// SKU of the only product.
pub(super) const SKU_ID: i32 = 1;

/// Maximum length of an Idempotency-Key, in characters.
const MAX_KEY: usize = 255;

/// An order that is about to be written.
#[derive(Clone, Debug)]
pub(super) struct OrderDraft {
    pub(super) partner_id: Uuid,
    pub(super) order_id: Uuid,
    pub(super) transaction_id: Uuid,
    /// One per voucher; assigned before the vouchers are selected.
    pub(super) voucher_ids: Vec<Uuid>,
    pub(super) key: IdempotencyKey,
    pub(super) product_id: Arc<str>,
    pub(super) order: PricedOrder,
    pub(super) at: OffsetDateTime,
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
    pub(super) fn new(
        partner_id: Uuid,
        text: Option<&[u8]>,
        path: &str,
        body: &[u8],
    ) -> Result<Self, Refusal> {
        let text = text
            .filter(|text| !text.is_empty() && text.len() <= MAX_KEY && text.iter().all(u8::is_ascii_graphic))
            .ok_or(Refusal::MissingIdempotencyKey)?;
        let digest: [u8; 32] = Sha256::new()
            .chain_update(partner_id)
            .chain_update(b"orders ")
            .chain_update(text)
            .finalize()
            .into();
        let mut hash = [0; 16];
        hash.copy_from_slice(&digest[..16]);
        let fingerprint = Sha256::new()
            .chain_update(b"POST ")
            .chain_update(path)
            .chain_update(b" ")
            .chain_update(body)
            .finalize()
            .into();
        Ok(Self {
            hash: Uuid::from_bytes(hash),
            fingerprint,
        })
    }
}

impl OrderDraft {
    /// Assigns the ids.
    pub(super) fn new(
        partner_id: Uuid,
        key: IdempotencyKey,
        product_id: Arc<str>,
        order: PricedOrder,
        at: OffsetDateTime,
    ) -> Self {
        Self {
            partner_id,
            order_id: Uuid::now_v7(),
            transaction_id: Uuid::now_v7(),
            voucher_ids: (0..order.quantity).map(|_| Uuid::now_v7()).collect(),
            key,
            product_id,
            order,
            at,
        }
    }

    /// The order as in the response.
    pub(super) fn delivered(&self) -> DeliveredOrder<'_> {
        DeliveredOrder {
            order_id: self.order_id,
            product_id: &self.product_id,
            order: self.order,
            at: self.at,
        }
    }

    /// The order lines in the stored JSON format.
    pub(super) fn lines(&self) -> String {
        let (denomination, quantity) = (self.order.denomination, self.order.quantity);
        let line = serde_json::json!({
            "sku_id": SKU_ID, "product_id": &*self.product_id, "denomination": denomination, "quantity": quantity,
        });
        format!("[{line}]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_hash_depends_on_partner_and_fingerprint_on_body() {
        let key = |partner: u128, text: &[u8], body: &[u8]| {
            IdempotencyKey::new(Uuid::from_u128(partner), Some(text), "/api/v1/orders", body).unwrap()
        };
        let one = key(1, b"k", b"{}");
        assert_eq!(key(1, b"k", b"{}").hash, one.hash);
        assert_ne!(key(2, b"k", b"{}").hash, one.hash);
        let other_body = key(1, b"k", b"{ }");
        assert_eq!(other_body.hash, one.hash);
        assert_ne!(other_body.fingerprint, one.fingerprint);
    }

    #[test]
    fn invalid_key_is_rejected() {
        let long = [b'k'; MAX_KEY + 1];
        for text in [None, Some(&b""[..]), Some(&b"a b"[..]), Some(&long[..])] {
            let key = IdempotencyKey::new(Uuid::nil(), text, "/api/v1/orders", b"{}");
            assert_eq!(key.err(), Some(Refusal::MissingIdempotencyKey));
        }
    }
}
