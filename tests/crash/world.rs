//! What is for sale, and who buys?

use bytes::Bytes;
use serde_json::json;
use vouchsafe_load::partner::PartnerClient;
use vouchsafe_load::signer::Credentials;

use crate::operator::Operator;
use crate::program::Program;

/// A product at its one denomination.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Goods {
    pub(crate) product_id: &'static str,
    pub(crate) usd: u32,
    pub(crate) route: &'static str,
    pub(crate) vendor: &'static str,
    pub(crate) approval: &'static str,
    pub(crate) returnable: bool,
}

const fn stocked(product_id: &'static str, usd: u32) -> Goods {
    Goods {
        product_id,
        usd,
        route: "stock",
        vendor: "manual",
        approval: "rule",
        returnable: false,
    }
}

/// What this vendor sells.
const fn bought(product_id: &'static str, vendor: &'static str) -> Goods {
    Goods {
        route: "vendor",
        vendor,
        ..stocked(product_id, 20)
    }
}

/// What everybody wants.
pub(crate) const HOT: Goods = stocked("hot", 25);

/// What is ordered beside it. In another order than by name, so that the service has to sort.
pub(crate) const BESIDE: [Goods; 2] = [stocked("wide", 10), stocked("calm", 50)];

/// What there are three of.
pub(crate) const SCARCE: Goods = stocked("scarce", 5);

/// How many there are of it.
pub(crate) const SCARCE_STOCK: u64 = 3;

/// What nobody can pay for.
pub(crate) const DEAR: Goods = stocked("dear", 100_000_000);

/// What a vendor has to make, and never does.
pub(crate) const MADE: Goods = bought("made", "manual");

/// Everything.
pub(crate) const ALL_GOODS: [Goods; 6] = [HOT, BESIDE[0], BESIDE[1], SCARCE, DEAR, MADE];

/// What is bought for orders that live on: filled in a second; the same, after an operator's word; half of it; nothing of
/// it; all of it, with an answer that is lost; over HTTP, with an answer that is cut off; over HTTP, in two parts.
pub(crate) const LIFE_GOODS: [Goods; 7] = [
    Goods {
        returnable: true,
        ..bought("quick", "mock")
    },
    Goods {
        approval: "always",
        returnable: true,
        ..bought("checked", "mock")
    },
    bought("sbx-partial", "mock"),
    bought("sbx-vendor-fails", "mock"),
    bought("sbx-vendor-timeout", "mock"),
    bought("sim-drop", "simulator"),
    bought("sim-pending", "simulator"),
];

/// A partner with its credentials.
#[derive(Debug, Clone)]
pub(crate) struct Buyer {
    pub(crate) partner_id: String,
    pub(crate) credentials: Credentials,
}

impl Buyer {
    /// A connection of this partner to a service.
    pub(crate) fn at(&self, base_url: &str) -> PartnerClient {
        PartnerClient::new(base_url, self.credentials.clone()).unwrap()
    }
}

/// The body of an order for so many of each.
pub(crate) fn order_of(items: &[(Goods, u64)]) -> Bytes {
    let items: Vec<_> = items
        .iter()
        .map(|(goods, quantity)| {
            json!({ "product_id": goods.product_id, "denomination": goods.usd, "quantity": quantity })
        })
        .collect();
    Bytes::from(json!({ "items": items }).to_string())
}

/// Puts everything on sale, and makes a partner for each of these amounts of USD.
pub(crate) async fn furnish(program: &Program, money: &[u32]) -> Vec<Buyer> {
    let mut operator = Operator::of(program);
    for goods in &ALL_GOODS {
        operator.product(goods).await;
    }
    operator.import(&SCARCE, "all", SCARCE_STOCK).await;
    let mut buyers = Vec::new();
    for (number, usd) in money.iter().enumerate() {
        let buyer = operator.partner(&format!("partner {number}")).await;
        operator.top_up(&buyer, *usd, "opening").await;
        buyers.push(buyer);
    }
    buyers
}
