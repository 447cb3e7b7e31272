//! What is for sale in a run, and who buys? Sizes alone: what is put on sale has no meaning beyond them.

use futures_util::future::try_join_all;

use super::operator::{LoadPartner, Operator, OperatorError};

/// The face value of what is sold, in USD.
pub const DENOMINATION: u32 = 25;

/// What the products of a run begin with, and no other product does.
pub const PRODUCT_PREFIX: &str = "load-";

/// Connections over which a stand is furnished: thousands of small requests wait for a commit each.
const OPERATORS: usize = 4;

/// One SKU: a product at [`DENOMINATION`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeedSku {
    pub product_id: String,
    /// How many vouchers of it are imported.
    pub vouchers: u64,
}

/// What a service is to hold before a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeedData {
    /// What is for sale.
    pub skus: Vec<SeedSku>,
    /// How many partners there are.
    pub partners: usize,
    /// What each has to spend.
    pub usd_each: u64,
}

impl SeedData {
    /// `skus` of them, named by number, with `vouchers` each.
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

/// The product of the SKU with this number.
#[must_use]
pub fn product_id(number: usize) -> String {
    format!("{PRODUCT_PREFIX}{number:04}")
}

/// Puts everything on sale and gives the partners their money; returns them in their order.
///
/// # Errors
/// [`OperatorError`]; what was made before stays.
pub async fn seed(operator: &mut Operator, furnishing: &SeedData) -> Result<Vec<LoadPartner>, OperatorError> {
    operator.put_manual_vendor().await?;
    let stocking = shares(&furnishing.skus)
        .into_iter()
        .map(|skus| stock(operator.new_connection(), skus));
    try_join_all(stocking).await?;
    let numbers: Vec<usize> = (0..furnishing.partners).collect();
    let registering = shares(&numbers)
        .into_iter()
        .map(|numbers| register(operator.new_connection(), numbers, furnishing.usd_each));
    Ok(try_join_all(registering).await?.into_iter().flatten().collect())
}

/// A part for each operator, in their order: as even as can be, and none is empty.
fn shares<T>(all: &[T]) -> Vec<&[T]> {
    all.chunks(all.len().div_ceil(OPERATORS).max(1)).collect()
}

async fn stock(mut operator: Operator, skus: &[SeedSku]) -> Result<(), OperatorError> {
    for sku in skus {
        operator.put_product(&sku.product_id, &[DENOMINATION]).await?;
        operator
            .import_vouchers(&sku.product_id, DENOMINATION, &sku.product_id, sku.vouchers)
            .await?;
    }
    Ok(())
}

async fn register(
    mut operator: Operator,
    numbers: &[usize],
    usd_each: u64,
) -> Result<Vec<LoadPartner>, OperatorError> {
    let mut buyers = Vec::with_capacity(numbers.len());
    for number in numbers {
        let buyer = operator.create_partner(&format!("load {number}")).await?;
        operator.top_up(&buyer, usd_each, "load").await?;
        buyers.push(buyer);
    }
    Ok(buyers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_shared_evenly_and_in_its_order() {
        for count in [0, 1, OPERATORS, OPERATORS + 1, 100] {
            let all: Vec<usize> = (0..count).collect();
            let shares = shares(&all);
            assert!(shares.len() <= OPERATORS && shares.iter().all(|share| !share.is_empty()));
            assert_eq!(shares.concat(), all);
        }
    }
}
