//! What can be ordered in a world: a product for each thing that the engine treats in its own way.

use crate::domain::catalogue::Catalogue;
use crate::domain::product::{Approval, ExpiryKind, ExpiryPolicy, Product, Redemption, Route};
use crate::testing::build::{NOW, minor, usd};

/// `gift`: from stock alone. `bought`: from the vendor when the shelf is short. `checked`: always approved, and bought.
/// `strict`: from stock, with 30 days left at least. `old`: out of sale. All in USD, at 10.00 and 25.00.
#[must_use]
pub fn catalogue() -> Catalogue {
    let bought = |name| Product {
        route: Route::Vendor,
        ..product(name)
    };
    let checked = Product {
        approval: Approval::Always,
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

/// The product, out of sale.
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
        route: Route::Stock,
        approval: Approval::Rule,
        returnable: false,
        min_validity_days: 0,
        low_stock_at: 0,
        discontinued: false,
        updated_at: NOW,
    }
}
