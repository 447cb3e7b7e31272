//! Products and partners of the crash tests.

use std::path::Path;

use bytes::Bytes;
use serde_json::json;
use tempfile::TempDir;
use vouchsafe_api_client::partner::PartnerClient;
use vouchsafe_api_client::signer::Credentials;

use crate::operator::Operator;
use vouchsafe_test_harness::{Instance, WAIT_TIMEOUT, disk_directory, program};

/// The harness creates it with every product.
pub(crate) const MANUAL_VENDOR: &str = "by-hand";

/// A product with one denomination.
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
        vendor: MANUAL_VENDOR,
        approval: "rule",
        returnable: false,
    }
}

const fn vendor_product(product_id: &'static str, vendor: &'static str) -> TestProduct {
    TestProduct {
        route: "vendor",
        vendor,
        ..stock_product(product_id, 20)
    }
}

/// The product of most orders.
pub(crate) const HOT: TestProduct = stock_product("hot", 25);

/// Not in alphabetical order, so that the service has to sort its locks.
pub(crate) const OTHERS: [TestProduct; 2] = [stock_product("wide", 10), stock_product("calm", 50)];

pub(crate) const SCARCE: TestProduct = stock_product("scarce", 5);

pub(crate) const SCARCE_STOCK: u64 = 3;

pub(crate) const UNAFFORDABLE: TestProduct = stock_product("dear", 100_000_000);

/// The vendor never fills it.
pub(crate) const NEVER_FILLED: TestProduct = vendor_product("made", MANUAL_VENDOR);

pub(crate) const ALL_PRODUCTS: [TestProduct; 6] =
    [HOT, OTHERS[0], OTHERS[1], SCARCE, UNAFFORDABLE, NEVER_FILLED];

/// In this order: filled within a second; filled after approval; filled by half; never filled; filled with a
/// lost response; over HTTP with a truncated response; over HTTP in two parts.
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

#[derive(Debug, Clone)]
pub(crate) struct Buyer {
    pub(crate) partner_id: String,
    pub(crate) credentials: Credentials,
}

impl Buyer {
    pub(crate) fn client(&self, base_url: &str) -> PartnerClient {
        PartnerClient::new(base_url, self.credentials.clone())
            .unwrap()
            .with_timeout(WAIT_TIMEOUT)
    }
}

pub(crate) fn order_body(items: &[(TestProduct, u64)]) -> Bytes {
    let items: Vec<_> = items
        .iter()
        .map(|(product, quantity)| {
            json!({ "product_id": product.product_id, "denomination": product.usd, "quantity": quantity })
        })
        .collect();
    Bytes::from(json!({ "items": items }).to_string())
}

/// Name of the copied program in a test's directory.
const PROGRAM_COPY: &str = "vouchsafe";

/// Creates a directory with a copy of the program: a concurrent build must not replace it between restarts.
pub(crate) fn test_directory() -> TempDir {
    let directory = disk_directory();
    std::fs::copy(program(), directory.path().join(PROGRAM_COPY)).unwrap();
    directory
}

/// Returns a service, not yet started, that runs the copied program beside its data directory.
pub(crate) fn crash_instance(data_dir: &Path, settings: &[(&str, &str)]) -> Instance {
    Instance::new(data_dir, settings).with_program(data_dir.with_file_name(PROGRAM_COPY))
}

/// Creates all products and a partner for each opening balance. USD.
pub(crate) async fn seed_service(program: &Instance, balances: &[u32]) -> Vec<Buyer> {
    let mut operator = Operator::of(program);
    for product in &ALL_PRODUCTS {
        operator.put_product(product).await;
    }
    operator.import_stock(&SCARCE, "all", SCARCE_STOCK).await;
    let mut buyers = Vec::new();
    for (number, usd) in balances.iter().enumerate() {
        let buyer = operator.create_partner(&format!("partner {number}")).await;
        operator.top_up(&buyer, *usd, "opening").await;
        buyers.push(buyer);
    }
    buyers
}
