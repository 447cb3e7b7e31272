//! Catalogue of the tests: one product with its category and vendor, and sealed vouchers of it.

use time::Date;
use vouchsafe_domain::category::Category;
use vouchsafe_domain::money::Amount;
use vouchsafe_domain::product::{CodeCase, CodeIdentity, CodeScope, Product, Sku};
use vouchsafe_domain::vendor::{AdapterKind, DEFAULT_CONCURRENCY};
use vouchsafe_security::vault::code::{CodeParts, VoucherCode};
use vouchsafe_security::vault::master_key::MasterKey;
use vouchsafe_security::vault::seal::{CodeId, Vault};
use vouchsafe_simulation::build;
use vouchsafe_store::StoreError;
use vouchsafe_store::keyring::Keyring;
use vouchsafe_store::{
    AuditActor, ImportOutcome, ImportTarget, NewVoucher, PgStore, StockBatch, StockOrigin, VendorConfig,
};

pub(super) const BRAND: &str = "Acme";

pub(super) fn sku() -> Sku {
    Sku {
        product_id: "acme-us".parse().unwrap(),
        denomination: Amount::from_minor(2_500),
    }
}

pub(super) fn product(brand: &str) -> Product {
    let sku = sku();
    Product {
        name: "Acme".to_owned(),
        brand: brand.to_owned(),
        category_id: "games".to_owned(),
        vendor: "mock".to_owned(),
        denominations: vec![sku.denomination.of(build::usd())],
        ..build::product(sku.product_id.as_str())
    }
}

/// Adds the product, with its category and vendor.
pub(super) async fn seed(store: &PgStore, product: Product) {
    let category = Category {
        category_id: product.category_id.clone(),
        name: "Games".to_owned(),
        parent_id: None,
    };
    let vendor = VendorConfig {
        vendor_id: product.vendor.clone(),
        adapter: AdapterKind::Mock,
        url: None,
        credential: None,
        concurrency: DEFAULT_CONCURRENCY,
    };
    let actor = AuditActor::service;
    store.categories.put(category, actor()).await.unwrap();
    store.vendors.put(vendor, actor()).await.unwrap();
    store.products.put(product, actor()).await.unwrap();
}

pub(super) async fn open_keyring(store: &PgStore) -> Keyring {
    let master = MasterKey::parse(&"ab".repeat(32)).unwrap();
    Keyring::open(store.data_keys.clone(), master.into())
        .await
        .unwrap()
}

pub(super) fn seal_voucher(vault: &Vault, code_id: CodeId, code: &str, expiry: Option<Date>) -> NewVoucher {
    seal_code(vault, code_id, (code, ""), expiry)
}

pub(super) fn seal_code(
    vault: &Vault,
    code_id: CodeId,
    (code, pin): (&str, &str),
    expiry: Option<Date>,
) -> NewVoucher {
    let code = VoucherCode::parse(CodeParts {
        code,
        pin: Some(pin),
        ..CodeParts::default()
    })
    .unwrap();
    NewVoucher {
        code_id,
        blind_index: vault.blind_index(CodeScope::exact(BRAND), &code),
        code_index: vault.code_index(CodeScope::exact(BRAND), &code),
        sealed: vault.seal(code_id, &sku(), &code).unwrap(),
        expiry,
        vendor_reference: None,
    }
}

pub(super) async fn import(store: &PgStore, stock_ids: Vec<i64>, vouchers: Vec<NewVoucher>) -> ImportOutcome {
    import_as(store, CodeIdentity::Code, stock_ids, vouchers).await
}

pub(super) async fn import_as(
    store: &PgStore,
    code_identity: CodeIdentity,
    stock_ids: Vec<i64>,
    vouchers: Vec<NewVoucher>,
) -> ImportOutcome {
    try_import(store, code_identity, stock_ids, vouchers)
        .await
        .unwrap()
}

pub(super) async fn try_import(
    store: &PgStore,
    code_identity: CodeIdentity,
    stock_ids: Vec<i64>,
    vouchers: Vec<NewVoucher>,
) -> Result<ImportOutcome, StoreError> {
    let target = ImportTarget {
        sku: sku(),
        brand: BRAND.to_owned(),
        currency: build::usd(),
        code_identity,
        code_case: CodeCase::Exact,
    };
    let named = store
        .stock
        .open_batch("mock".to_owned(), "test".to_owned())
        .await?;
    let batch = StockBatch {
        target,
        vouchers,
        stock_ids,
        origin: StockOrigin::Import(named),
    };
    store.stock.import(batch, AuditActor::service()).await
}
