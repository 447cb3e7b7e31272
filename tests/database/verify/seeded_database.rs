//! Seeded database: a partner with a balance, stock, a delivered order with read codes, a pending and a
//! cancelled order, a payout, a top-up, a reconciliation with drifts, and webhook endpoints with failed
//! deliveries.

use sqlx::postgres::PgConnectOptions;
use time::macros::{date, datetime};
use tokio::runtime::Handle;
use vouchsafe_actors::ports::record::Verdict;
use vouchsafe_actors::ports::store::Store as _;
use vouchsafe_domain::allowlist::Allowlist;
use vouchsafe_domain::clock::{Clock as _, SystemClock};
use vouchsafe_domain::ids::{CredentialId, OrderId, VoucherId};
use vouchsafe_domain::operator::{OperatorName, Role};
use vouchsafe_domain::order::{Order, PendingReason};
use vouchsafe_domain::partner::Partner;
use vouchsafe_domain::product::{Product, Sku, SupplyRoute};
use vouchsafe_domain::purchase::{BuyRequest, PurchaseKey};
use vouchsafe_domain::stock::StockRequest;
use vouchsafe_domain::voucher::{Allocation, Expiry, StockVoucher};
use vouchsafe_security::credential;
use vouchsafe_security::environment::Environment;
use vouchsafe_security::vault::checkpoint_key::CheckpointKey;
use vouchsafe_security::vault::grant_key::GrantKey;
use vouchsafe_store::{
    AuditActor, AuditCheckpoint, CodeRetrieval, ImportOutcome, NewPurchase, PgNode, PgStore,
};

use vouchsafe_test_harness::Database;

use crate::catalogue::{self, BRAND, seal_voucher, sku};

mod deliveries;
mod reconciliation;
mod records;

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
        assert!(builder.write_checkpoint().await.is_some());
        builder.record_activity().await;
        assert!(builder.write_checkpoint().await.is_some());
        assert_eq!(
            builder.write_checkpoint().await,
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
        store.grants.unlock(GrantKey::from_bytes([1; 32]));
        let node = PgNode::start(&store.database, "node-1".to_owned()).await.unwrap();
        let admin = store.operators.create(
            OperatorName::built_in_admin(),
            Role::Admin,
            true,
            AuditActor::service(),
        );
        admin.await.unwrap();
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
        catalogue::seed(&store, product()).await;
        Self {
            store,
            node,
            partner,
            credential_id,
            sku: sku(),
        }
    }

    async fn write_checkpoint(&self) -> Option<AuditCheckpoint> {
        self.store
            .audit_log
            .write_checkpoint(CheckpointKey::new([1; 32]))
            .await
            .unwrap()
    }

    async fn import_vouchers(&self, count: usize) {
        let vault = catalogue::open_keyring(&self.store).await.vault();
        let ids = self.store.stock.generate_ids(count).await.unwrap();
        let expiry = Some(date!(2099 - 12 - 31));
        let voucher = |&code_id| seal_voucher(&vault, code_id, &format!("CODE-{code_id:?}"), expiry);
        let vouchers = ids.codes.iter().map(voucher).collect();
        let outcome = catalogue::import(&self.store, ids.stock, vouchers).await;
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
            demanded: 0,
        };
        let claimed = self.node.claim_stock(request).await.unwrap();
        let chunk = &claimed.chunks[0];
        let vouchers = chunk.vouchers.iter().take(2).map(|&(stock_id, expiry)| {
            let stocked = StockVoucher {
                expiry,
                stock_id,
                chunk_id: chunk.chunk_id,
            };
            Allocation::new(VoucherId::generate(), 0, self.sku.clone(), stocked)
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
                expiry_policy: product().expiry_policy,
            },
        };
        let partner_id = self.partner.partner_id;
        self.store
            .purchases
            .start_writes("node-1".to_owned())
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

/// The product, bought from its vendor.
fn product() -> Product {
    Product {
        route: SupplyRoute::Vendor,
        ..catalogue::product(BRAND)
    }
}
