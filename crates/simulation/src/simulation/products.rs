//! Products of the simulation, one for each way in which the engine treats a product.

use vouchsafe_domain::catalogue::Catalogue;
use vouchsafe_domain::product::{ApprovalPolicy, ExpiryKind, ExpiryPolicy, Product, Redemption, SupplyRoute};

use crate::build::{NOW, minor, usd};

/// `gift`: from stock only. `bought`: from the vendor if stock is short. `checked`: always needs approval, from the vendor.
/// `strict`: from stock, valid for at least 30 days. `old`: discontinued. All in USD, at 10.00 and 25.00.
#[must_use]
pub fn catalogue() -> Catalogue {
    let bought = |name| Product {
        route: SupplyRoute::Vendor,
        ..product(name)
    };
    let checked = Product {
        approval: ApprovalPolicy::Always,
        ..bought("checked")
    };
    let strict = Product {
        min_validity_days: 30,
        ..product("strict")
    };
    Catalogue::new([
        product("gift"),
        bought("bought"),
        checked,
        strict,
        discontinued(product("old")),
    ])
}

#[must_use]
pub fn discontinued(product: Product) -> Product {
    Product {
        discontinued: true,
        ..product
    }
}

fn product(product_id: &str) -> Product {
    Product {
        product_id: product_id.parse().unwrap(),
        name: product_id.to_owned(),
        brand: "brand".to_owned(),
        category_id: "gifts".to_owned(),
        vendor: "vendor".to_owned(),
        currency: usd(),
        countries: Vec::new(),
        denominations: vec![minor(1_000), minor(2_500)],
        denomination_range: None,
        expiry_policy: ExpiryPolicy {
            kind: ExpiryKind::None,
            value: None,
        },
        redemption: Redemption::default(),
        route: SupplyRoute::Stock,
        approval: ApprovalPolicy::Rule,
        returnable: false,
        min_validity_days: 0,
        low_stock_at: 0,
        discontinued: false,
        updated_at: NOW,
    }
}
