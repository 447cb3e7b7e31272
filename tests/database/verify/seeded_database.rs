//! Seeded database: a partner with a balance, stock, a delivered order with read codes, a pending and a cancelled order, a
//! payout, a top-up, a reconciliation with drifts, and webhook endpoints with failed deliveries.

use sqlx::postgres::PgConnectOptions;
use time::macros::{date, datetime};
use tokio::runtime::Handle;
use vouchsafe_actors::ports::record::Verdict;
use vouchsafe_actors::ports::store::Store as _;
use vouchsafe_domain::allowlist::Allowlist;
use vouchsafe_domain::category::Category;
use vouchsafe_domain::clock::{Clock as _, SystemClock};
use vouchsafe_domain::ids::{CredentialId, OrderId, VoucherId};
use vouchsafe_domain::money::Amount;
use vouchsafe_domain::order::{Order, PendingReason};
use vouchsafe_domain::partner::Partner;
use vouchsafe_domain::product::{
    ApprovalPolicy, ExpiryKind, ExpiryPolicy, Product, Redemption, Sku, SupplyRoute,
};
use vouchsafe_domain::purchase::{BuyRequest, PurchaseKey};
use vouchsafe_domain::stock::StockRequest;
use vouchsafe_domain::vendor::{AdapterKind, DEFAULT_CONCURRENCY};
use vouchsafe_domain::voucher::{Allocation, Expiry, StockVoucher};
use vouchsafe_security::credential;
use vouchsafe_security::environment::Environment;
use vouchsafe_security::vault::code::{CodeParts, VoucherCode};
use vouchsafe_security::vault::master_key::MasterKey;
use vouchsafe_store::keyring::Keyring;
use vouchsafe_store::{
    AuditActor, CodeRetrieval, ImportOutcome, ImportTarget, NewPurchase, NewVoucher, PgNode, PgStore,
    StockBatch, StockOrigin, VendorConfig,
};

use vouchsafe_test_harness::Database;

mod deliveries;
mod reconciliation;
mod records;

const BRAND: &str = "Acme";

pub(crate) struct SeededDatabase {
    database: Database,
}

struct Builder {
    store: PgStore,
    node: PgNode,
    partner: Partner,
    credential_id: CredentialId,
    sku: Sku,
}

impl SeededDatabase {
    pub(crate) async fn create() -> Self {
        let database = Database::create().await;
        let store = PgStore::open(database.options(), Handle::current());
        store.prepare(Environment::Sandbox).await.unwrap();
        let builder = Builder::new(store).await;
        builder.import_vouchers(5).await;
        assert!(
            builder
                .store
                .audit_log
                .write_checkpoint()
                .await
                .unwrap()
                .is_some()
        );
        builder.record_activity().await;
        assert!(
            builder
                .store
                .audit_log
                .write_checkpoint()
                .await
                .unwrap()
                .is_some()
        );
        assert_eq!(
            builder.store.audit_log.write_checkpoint().await.unwrap(),
            None,
            "the checkpoints are complete"
        );
        Self { database }
    }

    pub(crate) fn options(&self) -> PgConnectOptions {
        self.database.options()
    }

    pub(crate) fn superuser_options(&self) -> PgConnectOptions {
        self.database.superuser_options()
    }

    pub(crate) async fn remove(self) {
        self.database.remove().await;
    }
}

impl Builder {
    async fn new(store: PgStore) -> Self {
        let node = PgNode::start(&store.database, "node-1".to_owned()).await.unwrap();
        let now = datetime!(2026-11-20 12:00 UTC);
        let partner = Partner::new("Partner".to_owned(), Allowlist::default(), now);
        let key_pair = credential::generate_key_pair(Environment::Sandbox, getrandom::fill).unwrap();
        let credential = key_pair.to_credential(partner.partner_id, now);
        let credential_id = credential.credential_id;
        store
            .partners
            .create(partner.clone(), Some(credential), AuditActor::service())
            .await
            .unwrap();
        let category = Category {
            category_id: "games".to_owned(),
            name: "Games".to_owned(),
            parent_id: None,
        };
        store
            .categories
            .put(category, AuditActor::service())
            .await
            .unwrap();
        let vendor = VendorConfig {
            vendor_id: "mock".to_owned(),
            adapter: AdapterKind::Mock,
            url: None,
            credential: None,
            concurrency: DEFAULT_CONCURRENCY,
        };
        store.vendors.put(vendor, AuditActor::service()).await.unwrap();
        let sku = Sku {
            product_id: "acme-us".parse().unwrap(),
            denomination: Amount::from_minor(2_500),
        };
        store
            .products
            .put(product(&sku), AuditActor::service())
            .await
            .unwrap();
        Self {
            store,
            node,
            partner,
            credential_id,
            sku,
        }
    }

    async fn import_vouchers(&self, count: usize) {
        let master = MasterKey::parse(&"ab".repeat(32)).unwrap();
        let vault = Keyring::open(self.store.data_keys.clone(), master)
            .await
            .unwrap()
            .vault();
        let ids = self.store.stock.generate_ids(count).await.unwrap();
        let voucher = |&code_id| {
            let text = format!("CODE-{code_id:?}");
            let code = VoucherCode::parse(CodeParts {
                code: &text,
                ..CodeParts::default()
            })
            .unwrap();
            NewVoucher {
                code_id,
                blind_index: vault.blind_index(BRAND, &code),
                sealed: vault.seal(code_id, &self.sku, &code).unwrap(),
                expiry: Some(date!(2099 - 12 - 31)),
                vendor_reference: None,
            }
        };
        let vouchers = ids.codes.iter().map(voucher).collect();
        let target = ImportTarget {
            sku: self.sku.clone(),
            brand: BRAND.to_owned(),
            currency: "USD".parse().unwrap(),
        };
        let batch = StockBatch {
            target,
            vouchers,
            stock_ids: ids.stock,
            origin: StockOrigin::Import,
        };
        let outcome = self
            .store
            .stock
            .import(batch, AuditActor::service())
            .await
            .unwrap();
        assert!(matches!(outcome, ImportOutcome::Stored(imported) if imported.imported == count as u64));
    }

    /// Records a top-up, a delivered order, a pending order and a code read, then the other activity.
    async fn record_activity(&self) {
        let webhook_id = self.register_webhooks().await;
        let mut lane = self.node.open_lane(0).await.unwrap();
        let request = StockRequest {
            sku: self.sku.clone(),
            loaded_chunks: Vec::new(),
            target_quantity: 2,
            not_before: Expiry::PAST,
        };
        let claimed = self.node.claim_stock(request).await.unwrap();
        let chunk = &claimed.chunks[0];
        let vouchers = chunk
            .vouchers
            .iter()
            .take(2)
            .map(|&(stock_id, expiry)| Allocation {
                voucher_id: VoucherId::generate(),
                line: 0,
                sku: self.sku.clone(),
                voucher: StockVoucher {
                    expiry,
                    stock_id,
                    chunk_id: chunk.chunk_id,
                },
            });
        let at = SystemClock::new().now();
        let (first, second) = (OrderId::generate_at(at), OrderId::generate_at(at));
        let delivered = Order::delivered(
            first,
            self.partner.partner_id,
            &self.priced(2),
            vouchers.collect(),
            at,
        );
        let pending = Order::pending(
            second,
            self.partner.partner_id,
            &self.priced(3),
            PendingReason::Vendor,
            at,
        );
        let records = [
            self.top_up_record(),
            self.order_record(delivered),
            self.order_record(pending),
        ];
        let verdicts = lane.commit(1, &records).await.unwrap();
        assert!(
            verdicts
                .iter()
                .all(|verdict| matches!(verdict, Verdict::Committed(Some(_)))),
            "{verdicts:?}"
        );
        let retrieval = CodeRetrieval {
            partner_id: self.partner.partner_id,
            order_id: first,
            credential_id: self.credential_id,
            address: "127.0.0.1".to_owned(),
            trace_id: "trace".to_owned(),
        };
        self.node.retrieve_codes(retrieval).await.unwrap();
        let purchase = NewPurchase {
            line: 0,
            vendor: "nobody".to_owned(),
            request: BuyRequest {
                key: PurchaseKey(uuid::Uuid::now_v7()),
                product_id: self.sku.product_id.clone(),
                denomination: self.sku.denomination.of("USD".parse().unwrap()),
                quantity: 3,
                requested_at: at,
                expiry_policy: product(&self.sku).expiry_policy,
            },
        };
        let partner_id = self.partner.partner_id;
        self.store
            .purchases
            .create(partner_id, second, vec![purchase])
            .await
            .unwrap();
        self.record_reconciliation(second).await;
        let third = self.delivered_record(&chunk.vouchers[2..3], chunk.chunk_id);
        let cancelled = third.order.as_ref().map(|order| order.order_id).unwrap();
        let records = [third, self.payout_record()];
        lane.commit(2, &records).await.unwrap();
        let stored = self
            .node
            .load_order(self.partner.partner_id, cancelled)
            .await
            .unwrap();
        let record = self.cancellation_record(&stored.unwrap()).await;
        let verdicts = lane.commit(3, &[record]).await.unwrap();
        assert!(
            matches!(verdicts[..], [Verdict::Committed(Some(_))]),
            "{verdicts:?}"
        );
        self.record_deliveries(webhook_id).await;
    }
}

fn product(sku: &Sku) -> Product {
    Product {
        product_id: sku.product_id.clone(),
        name: "Acme".to_owned(),
        brand: BRAND.to_owned(),
        category_id: "games".to_owned(),
        vendor: "mock".to_owned(),
        currency: "USD".parse().unwrap(),
        countries: Vec::new(),
        denominations: vec![sku.denomination],
        denomination_range: None,
        expiry_policy: ExpiryPolicy {
            kind: ExpiryKind::None,
            value: None,
        },
        redemption: Redemption::default(),
        route: SupplyRoute::Vendor,
        approval: ApprovalPolicy::Rule,
        returnable: false,
        min_validity_days: 0,
        low_stock_at: 0,
        discontinued: false,
        updated_at: datetime!(2026-11-20 12:00 UTC),
    }
}
