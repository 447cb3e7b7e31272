//! Example bodies in the documents of both listeners.

use serde_json::{Value, json};

/// The fields of a product that partners and operators see.
pub(super) fn product() -> Value {
    json!({
        "product_id": "amzn-us",
        "name": "Amazon.com gift card",
        "brand": "amazon",
        "category_id": "retail",
        "vendor": "mock",
        "currency": "USD",
        "countries": ["US"],
        "denominations": [25.0, 50.0],
        "denomination_range": null,
        "expiry_policy": { "type": "MONTHS_FROM_ISSUE", "value": 12 },
        "redemption": { "instructions": "Enter the code at checkout.", "terms": "Not redeemable for cash." },
        "updated_at": "2026-11-20T12:00:00.123456Z",
    })
}
