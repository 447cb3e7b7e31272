//! Products under test and the bodies that order them.

use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::{Value, json};

/// A product with one denomination.
#[derive(Debug, Clone)]
pub struct Sale {
    pub product_id: String,
    pub denomination: &'static str,
}

/// Returns a name that no other test uses.
pub fn unique(prefix: &str) -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("{prefix}-{}-{number}", std::process::id())
}

pub fn order_body(sale: &Sale, quantity: u32) -> Value {
    json!({ "items": [order_line(sale, quantity)] })
}

pub fn order_line(sale: &Sale, quantity: u32) -> Value {
    let denomination: Value = serde_json::from_str(sale.denomination).unwrap();
    json!({ "product_id": sale.product_id, "denomination": denomination, "quantity": quantity })
}
