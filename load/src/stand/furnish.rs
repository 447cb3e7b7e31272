//! What is for sale in a run, and who buys? Sizes alone: what is put on sale has no meaning beyond them.

use super::operator::{Buyer, Operator, OperatorError};

/// The face value of what is sold, in USD.
pub const DENOMINATION: u32 = 25;

/// What the products of a run begin with, and no other product does.
pub const PRODUCT_PREFIX: &str = "load-";

/// One SKU: a product at [`DENOMINATION`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sku {
    /// Its product.
    pub product_id: String,
    /// How many vouchers of it are imported.
    pub vouchers: u64,
}

/// What a service is to hold before a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Furnishing {
    /// What is for sale.
    pub skus: Vec<Sku>,
    /// How many partners there are.
    pub partners: usize,
    /// What each has to spend.
    pub usd_each: u64,
}

impl Furnishing {
    /// `skus` of them, named by number, with `vouchers` each.
    #[must_use]
    pub fn even(skus: usize, vouchers: u64, partners: usize, usd_each: u64) -> Self {
        let sku = |number| Sku {
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
pub async fn furnish(operator: &mut Operator, furnishing: &Furnishing) -> Result<Vec<Buyer>, OperatorError> {
    operator.vendor_by_hand().await?;
    for sku in &furnishing.skus {
        operator.product(&sku.product_id, &[DENOMINATION]).await?;
        operator
            .import(&sku.product_id, DENOMINATION, &sku.product_id, sku.vouchers)
            .await?;
    }
    let mut buyers = Vec::with_capacity(furnishing.partners);
    for number in 0..furnishing.partners {
        let buyer = operator.partner(&format!("load {number}")).await?;
        operator.top_up(&buyer, furnishing.usd_each, "load").await?;
        buyers.push(buyer);
    }
    Ok(buyers)
}
