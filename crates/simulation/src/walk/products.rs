//! Products of the simulation, one for each way in which the engine treats a product.

use vouchsafe_domain::catalogue::Catalogue;
use vouchsafe_domain::product::{ApprovalPolicy, Product, SupplyRoute};

use crate::build::product;

/// `gift`: from stock only. `bought`: from the vendor if stock is short. `checked`: always needs approval,
/// from the vendor. `strict`: from stock, valid for at least 30 days. `old`: discontinued. All in USD, at
/// 10.00 and 25.00.
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
