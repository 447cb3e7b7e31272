//! Seed data of a test deployment: products with stock, and partners with a balance, created over the admin
//! API.

use futures_util::future::try_join_all;
use serde_json::Value;

use super::operator::{LoadPartner, Operator};

/// Denomination of all products, in USD.
pub const DENOMINATION: u32 = 25;

/// Prefix of all product ids of a run; no other product has it.
pub(crate) const PRODUCT_PREFIX: &str = "load-";

/// Concurrent connections for seeding: each of thousands of small requests waits for a commit.
const CONCURRENT_OPERATORS: usize = 4;

/// A product at [`DENOMINATION`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeedSku {
    pub product_id: String,
    /// Number of imported vouchers.
    pub vouchers: u64,
}

/// Data of the service before a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeedData {
    pub skus: Vec<SeedSku>,
    pub partners: usize,
    /// Balance of each partner, in USD.
    pub usd_each: u64,
}

impl SeedData {
    /// `skus` SKUs with `vouchers` vouchers each.
    #[must_use]
    pub fn even(skus: usize, vouchers: u64, partners: usize, usd_each: u64) -> Self {
        let sku = |number| SeedSku {
            product_id: product_id(number),
            vouchers,
        };
        Self {
            skus: (0..skus).map(sku).collect(),
            partners,
            usd_each,
        }
    }
}

/// Product id of the SKU with this number.
#[must_use]
pub fn product_id(number: usize) -> String {
    format!("{PRODUCT_PREFIX}{number:04}")
}

/// Creates products, stock and partners; returns the partners in order.
///
/// # Errors
/// If a request fails; data created before the error remains.
pub async fn seed(operator: &mut Operator, data: &SeedData) -> anyhow::Result<Vec<LoadPartner>> {
    operator.put_manual_vendor().await?;
    let imports = split_evenly(&data.skus)
        .into_iter()
        .map(|skus| import_stock(operator.new_connection(), skus));
    try_join_all(imports).await?;
    let indexes: Vec<usize> = (0..data.partners).collect();
    let registrations = split_evenly(&indexes)
        .into_iter()
        .map(|indexes| create_partners(operator.new_connection(), indexes, data.usd_each));
    Ok(try_join_all(registrations).await?.into_iter().flatten().collect())
}

/// Splits work evenly over the operators, in order, without empty shares.
fn split_evenly<T>(items: &[T]) -> Vec<&[T]> {
    items
        .chunks(items.len().div_ceil(CONCURRENT_OPERATORS).max(1))
        .collect()
}

async fn import_stock(mut operator: Operator, skus: &[SeedSku]) -> anyhow::Result<()> {
    for sku in skus {
        operator
            .put_product(&sku.product_id, &[DENOMINATION], Value::Null)
            .await?;
        operator
            .import_vouchers(&sku.product_id, DENOMINATION, &sku.product_id, sku.vouchers)
            .await?;
    }
    Ok(())
}

async fn create_partners(
    mut operator: Operator,
    indexes: &[usize],
    usd_each: u64,
) -> anyhow::Result<Vec<LoadPartner>> {
    let mut partners = Vec::with_capacity(indexes.len());
    for number in indexes {
        let partner = operator.create_partner(&format!("load {number}")).await?;
        operator.top_up(&partner, usd_each, "load").await?;
        partners.push(partner);
    }
    Ok(partners)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn split_evenly_keeps_order_without_empty_shares() {
        for count in [0, 1, CONCURRENT_OPERATORS, CONCURRENT_OPERATORS + 1, 100] {
            let items: Vec<usize> = (0..count).collect();
            let parts = split_evenly(&items);
            assert!(parts.len() <= CONCURRENT_OPERATORS && parts.iter().all(|part| !part.is_empty()));
            assert_eq!(parts.concat(), items);
        }
    }
}
