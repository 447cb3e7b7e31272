//! Codes in lists of operators without their PIN, and codes that differ only in case or spelling.

use sqlx::PgConnection;
use tokio::runtime::Handle;
use vouchsafe_domain::product::{CodeCase, CodeIdentity, CodeScope, Product};
use vouchsafe_domain::stock::level::CodeVoidOutcome;
use vouchsafe_security::vault::code::{CodeParts, VoucherCode};
use vouchsafe_security::vault::seal::{CodeId, Vault};
use vouchsafe_store::keyring::Keyring;
use vouchsafe_store::{
    AuditActor, CodeMatch, ImportOutcome, ImportTarget, NewVoucher, PgStore, PutProductOutcome, SoldVoucher,
    SoldVoucherOutcome, StockBatch, StockOrigin, VoidTarget,
};
use vouchsafe_test_harness::Database;

use vouchsafe_verify as verify;

use crate::catalogue::{self, BRAND, product, sku};

async fn assert_invariants(connection: &mut PgConnection) {
    let findings = verify::check(connection).await.unwrap();
    assert!(findings.iter().all(|finding| finding.holds), "{findings:?}");
}

fn code(code: &str, pin: &str) -> VoucherCode {
    let parts = CodeParts {
        code,
        pin: Some(pin),
        ..CodeParts::default()
    };
    VoucherCode::parse(parts).unwrap()
}

fn product_with(code_case: CodeCase) -> Product {
    Product {
        code_case,
        ..product(BRAND)
    }
}

fn voucher(vault: &Vault, product: &Product, code_id: CodeId, code: &VoucherCode) -> NewVoucher {
    NewVoucher {
        code_id,
        blind_index: vault.blind_index(product.code_scope(), code),
        code_index: vault.code_index(product.code_scope(), code),
        sealed: vault.seal(code_id, &sku(), code).unwrap(),
        expiry: None,
        vendor_reference: None,
    }
}

struct TestStock {
    store: PgStore,
    keyring: Keyring,
}

impl TestStock {
    async fn open(database: &Database) -> Self {
        let store = PgStore::open(database.options(), Handle::current());
        let keyring = catalogue::open_keyring(&store).await;
        catalogue::seed(&store, product(BRAND)).await;
        Self { store, keyring }
    }

    async fn put(&self, product: Product) -> PutProductOutcome {
        self.store
            .products
            .put(product, AuditActor::service())
            .await
            .unwrap()
    }

    /// Imports a voucher for this definition of the product.
    async fn import(&self, product: &Product, voucher_code: &VoucherCode) -> ImportOutcome {
        let vault = self.keyring.sealing_vault().await.unwrap();
        let ids = self.store.stock.generate_ids(1).await.unwrap();
        let named = self.store.stock.open_batch("mock".to_owned(), "test".to_owned());
        let batch = StockBatch {
            target: ImportTarget::new(product, sku()),
            vouchers: vec![voucher(&vault, product, ids.codes[0], voucher_code)],
            stock_ids: ids.stock,
            origin: StockOrigin::Import(named.await.unwrap()),
        };
        self.store
            .stock
            .import(batch, AuditActor::service())
            .await
            .unwrap()
    }

    async fn count_imported(&self, product: &Product, voucher_code: &VoucherCode) -> u64 {
        match self.import(product, voucher_code).await {
            ImportOutcome::Stored(summary) => summary.imported,
            other => panic!("{other:?}"),
        }
    }

    /// What names a code in a list, for products that are identified so.
    fn code_match(&self, identity: CodeIdentity, named: &VoucherCode) -> CodeMatch {
        let (vault, scope) = (self.keyring.vault(), CodeScope::exact(BRAND));
        CodeMatch {
            blind_index: vault.blind_index(scope, named),
            code_index: (identity == CodeIdentity::Code).then(|| vault.code_index(scope, named)),
        }
    }

    async fn void(&self, identity: CodeIdentity, named: &VoucherCode) -> CodeVoidOutcome {
        let target = VoidTarget::Codes(sku().product_id, vec![self.code_match(identity, named)]);
        let void = self
            .store
            .stock
            .void(target, "recall".to_owned(), AuditActor::service());
        void.await.unwrap().codes[0]
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn code_without_pin_names_the_card_where_the_code_identifies_it() {
    let database = Database::create().await;
    let shop = TestStock::open(&database).await;
    let exact = product_with(CodeCase::Exact);
    for number in ["GC-1", "GC-2", "GC-3"] {
        assert_eq!(shop.count_imported(&exact, &code(number, "0012")).await, 1);
    }
    let pairs = CodeIdentity::CodeAndPin;
    assert_eq!(
        shop.void(pairs, &code("GC-1", "")).await,
        CodeVoidOutcome::Unknown
    );
    assert_eq!(
        shop.void(CodeIdentity::Code, &code("GC-1", "")).await,
        CodeVoidOutcome::Voided
    );
    assert_eq!(
        shop.void(CodeIdentity::Code, &code("GC-2", "other")).await,
        CodeVoidOutcome::Voided
    );
    assert_eq!(
        shop.void(CodeIdentity::Code, &code("GC-4", "")).await,
        CodeVoidOutcome::Unknown
    );
    // A list of sold vouchers without PINs keeps them from being sold again.
    let sold = [CodeIdentity::CodeAndPin, CodeIdentity::Code]
        .map(|identity| SoldVoucher::Code(shop.code_match(identity, &code("GC-3", ""))));
    let compare =
        shop.store
            .quarantine
            .withdraw_sold(sold.to_vec(), "restore".to_owned(), AuditActor::service());
    assert_eq!(
        compare.await.unwrap(),
        [SoldVoucherOutcome::Absent, SoldVoucherOutcome::Withdrawn]
    );
    assert_invariants(&mut database.connect().await).await;
    database.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn case_of_codes_is_a_rule_of_the_brand_and_fixed_with_its_first_stock() {
    let database = Database::create().await;
    let shop = TestStock::open(&database).await;
    let (exact, ignored) = (product_with(CodeCase::Exact), product_with(CodeCase::Ignored));
    let other = Product {
        product_id: "other".parse().unwrap(),
        // Another spelling of the same brand.
        ..product(&format!(" {}\u{200b}", BRAND.to_uppercase()))
    };
    assert!(matches!(
        shop.put(other.clone()).await,
        PutProductOutcome::Created(_)
    ));
    assert!(matches!(
        shop.put(ignored.clone()).await,
        PutProductOutcome::Replaced(_)
    ));
    let stored = shop.store.products.find(other.product_id.clone()).await.unwrap();
    assert_eq!(stored.unwrap().code_case, CodeCase::Ignored);
    assert_eq!(
        shop.import(&exact, &code("AB-1", "1")).await,
        ImportOutcome::ProductChanged
    );
    assert_eq!(shop.count_imported(&ignored, &code("AB-1", "x")).await, 1);
    assert_eq!(shop.count_imported(&ignored, &code("ab-1", "X")).await, 0);
    // Neither product can change it now, nor a new one of the brand.
    let new = Product {
        product_id: "new".parse().unwrap(),
        ..exact.clone()
    };
    for product in [exact, other, new] {
        assert_eq!(shop.put(product).await, PutProductOutcome::CodeCaseFixed);
    }
    assert_invariants(&mut database.connect().await).await;
    database.remove().await;
}
