//! Example bodies in the documents of both listeners.

use serde_json::{Value, json};
use time::macros::datetime;
use vouchsafe_domain::catalogue::Catalogue;
use vouchsafe_domain::product::Product;
use vouchsafe_wire::operator::products::ProductRequest;

/// The definition of a product.
pub(super) fn product_request() -> Value {
    json!({
        "name": "Amazon.com gift card",
        "brand": "amazon",
        "category_id": "retail",
        "vendor": "mock",
        "currency": "USD",
        "countries": ["US"],
        "denominations": [25, "50.00"],
        "expiry_policy": { "type": "MONTHS_FROM_ISSUE", "valid_months": 12 },
        "redemption": { "instructions": "Enter the code at checkout.", "terms": "Not redeemable for cash." },
        "content": {
            "description": "For anything that the shop sells.",
            "images": ["https://cdn.example/amazon-us.png"],
            "barcode_format": "CODE128",
            "balance_check_url": "https://shop.example/balance",
            "support_email": "cards@shop.example",
            "support_phone": "+1 555 0100",
        },
        "route": "stock",
    })
}

/// The product of that definition: a field with a default needs no example of its own. `None` if the
/// definition is not valid, which the tests of the documents do not permit.
pub(super) fn product() -> Option<Product> {
    let request: ProductRequest = serde_json::from_str(&product_request().to_string()).ok()?;
    let changed_at = datetime!(2026-11-20 12:00:00.123456 UTC);
    let product = request.into_product("amzn-us".parse().ok()?, &Catalogue::default(), changed_at);
    product.ok()
}
