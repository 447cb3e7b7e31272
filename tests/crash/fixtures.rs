//! What is for sale, and who buys?

use bytes::Bytes;
use serde_json::json;
use vouchsafe_load::partner::PartnerClient;
use vouchsafe_load::signer::Credentials;

use crate::operator::Operator;
use crate::program::Program;

/// A product at its one denomination.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TestProduct {
    pub(crate) product_id: &'static str,
    pub(crate) usd: u32,
    pub(crate) route: &'static str,
    pub(crate) vendor: &'static str,
    pub(crate) approval: &'static str,
    pub(crate) returnable: bool,
}

const fn stock_product(product_id: &'static str, usd: u32) -> TestProduct {
    TestProduct {
        product_id,
        usd,
        route: "stock",
        vendor: "manual",
        approval: "rule",
        returnable: false,
    }
}

/// What this vendor sells.
const fn vendor_product(product_id: &'static str, vendor: &'static str) -> TestProduct {
    TestProduct {
        route: "vendor",
        vendor,
        ..stock_product(product_id, 20)
    }
}

/// What everybody wants.
pub(crate) const HOT: TestProduct = stock_product("hot", 25);

/// What is ordered beside it. In another order than by name, so that the service has to sort.
pub(crate) const OTHERS: [TestProduct; 2] = [stock_product("wide", 10), stock_product("calm", 50)];

/// What there are three of.
pub(crate) const SCARCE: TestProduct = stock_product("scarce", 5);

/// How many there are of it.
pub(crate) const SCARCE_STOCK: u64 = 3;

/// What nobody can pay for.
pub(crate) const UNAFFORDABLE: TestProduct = stock_product("dear", 100_000_000);

/// What a vendor has to make, and never does.
pub(crate) const NEVER_FILLED: TestProduct = vendor_product("made", "manual");

/// Everything.
pub(crate) const ALL_PRODUCTS: [TestProduct; 6] = [HOT, OTHERS[0], OTHERS[1], SCARCE, UNAFFORDABLE, NEVER_FILLED];

/// What is bought for orders that live on: filled in a second; the same, after an operator's word; half of it; nothing of
/// it; all of it, with an answer that is lost; over HTTP, with an answer that is cut off; over HTTP, in two parts.
pub(crate) const LIFECYCLE_PRODUCTS: [TestProduct; 7] = [
    TestProduct {
        returnable: true,
        ..vendor_product("quick", "mock")
    },
    TestProduct {
        approval: "always",
        returnable: true,
        ..vendor_product("checked", "mock")
    },
    vendor_product("sbx-partial", "mock"),
    vendor_product("sbx-vendor-fails", "mock"),
    vendor_product("sbx-vendor-timeout", "mock"),
    vendor_product("sim-drop", "simulator"),
    vendor_product("sim-pending", "simulator"),
];

/// A partner with its credentials.
#[derive(Debug, Clone)]
pub(crate) struct Buyer {
    pub(crate) partner_id: String,
    pub(crate) credentials: Credentials,
}

impl Buyer {
    /// A connection of this partner to a service.
    pub(crate) fn client(&self, base_url: &str) -> PartnerClient {
        PartnerClient::new(base_url, self.credentials.clone()).unwrap()
    }
}

/// The body of an order for so many of each.
pub(crate) fn order_body(items: &[(TestProduct, u64)]) -> Bytes {
    let items: Vec<_> = items
        .iter()
        .map(|(goods, quantity)| {
            json!({ "product_id": goods.product_id, "denomination": goods.usd, "quantity": quantity })
        })
        .collect();
    Bytes::from(json!({ "items": items }).to_string())
}

/// Puts everything on sale, and makes a partner for each of these amounts of USD.
pub(crate) async fn seed_service(program: &Program, money: &[u32]) -> Vec<Buyer> {
    let mut operator = Operator::of(program);
    for goods in &ALL_PRODUCTS {
        operator.put_product(goods).await;
    }
    operator.import_stock(&SCARCE, "all", SCARCE_STOCK).await;
    let mut buyers = Vec::new();
    for (number, usd) in money.iter().enumerate() {
        let buyer = operator.create_partner(&format!("partner {number}")).await;
        operator.top_up(&buyer, *usd, "opening").await;
        buyers.push(buyer);
    }
    buyers
}
