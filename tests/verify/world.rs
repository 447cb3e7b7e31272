//! A database in which something has happened: a partner with money, stock, a delivered order whose codes were read, a
//! pending one, and a booking.

use sqlx::postgres::PgConnectOptions;
use time::macros::{date, datetime};
use tokio::runtime::Handle;
use vouchsafe::access::allowlist::Allowlist;
use vouchsafe::access::credential;
use vouchsafe::access::environment::Environment;
use vouchsafe::keyring::Keyring;
use vouchsafe::store::{
    By, Category, ImportOutcome, ImportTarget, NewVoucher, Partner, PgNode, PgStore, Retrieval, StockBatch,
};
use vouchsafe::vault::code::{CodeParts, VoucherCode};
use vouchsafe::vault::master_key::MasterKey;
use vouchsafe_actors::domain::answer::{Answer, Fingerprint, Keep, KeyHash};
use vouchsafe_actors::domain::clock::{Clock as _, SystemClock};
use vouchsafe_actors::domain::event::EventBundle;
use vouchsafe_actors::domain::ids::{CredentialId, OrderId, TransactionId, VoucherId};
use vouchsafe_actors::domain::ledger::{LedgerKind, Movement};
use vouchsafe_actors::domain::money::Amount;
use vouchsafe_actors::domain::order::{Fulfilment, Order, PendingReason, PricedLine, PricedOrder};
use vouchsafe_actors::domain::product::{
    Approval, ExpiryKind, ExpiryPolicy, Product, Redemption, Route, Sku,
};
use vouchsafe_actors::domain::stock::StockRequest;
use vouchsafe_actors::domain::voucher::{Allocation, Expiry, Shelved};
use vouchsafe_actors::journal::{KeyClaim, Record, Verdict};
use vouchsafe_actors::store::Store as _;

use crate::database::Database;

const BRAND: &str = "Acme";

/// The database.
pub(crate) struct World {
    database: Database,
}

struct Builder {
    store: PgNode,
    partner: Partner,
    credential_id: CredentialId,
    sku: Sku,
}

impl World {
    /// Lets it all happen.
    pub(crate) async fn create() -> Self {
        let database = Database::create().await;
        let store = PgStore::open(database.options(), Handle::current());
        store.prepare(Environment::Sandbox).await.unwrap();
        let store = PgNode::start(store, "node-1".to_owned()).await.unwrap();
        let builder = Builder::begin(store).await;
        builder.import(5).await;
        builder.happen().await;
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
    async fn begin(store: PgNode) -> Self {
        let now = datetime!(2026-11-20 12:00 UTC);
        let partner = Partner::new("Partner".to_owned(), Allowlist::default(), now);
        let minted = credential::mint(Environment::Sandbox, getrandom::fill).unwrap();
        let credential = minted.kept(partner.partner_id, now);
        let credential_id = credential.credential_id;
        store
            .create_partner(partner.clone(), Some(credential), By::service())
            .await
            .unwrap();
        let category = Category {
            category_id: "games".to_owned(),
            name: "Games".to_owned(),
            parent_id: None,
        };
        store.put_category(category, By::service()).await.unwrap();
        let sku = Sku {
            product_id: "acme-us".parse().unwrap(),
            denomination: Amount::from_minor(2_500),
        };
        store.put_product(product(&sku), By::service()).await.unwrap();
        Self {
            store,
            partner,
            credential_id,
            sku,
        }
    }

    async fn import(&self, count: usize) {
        let master = MasterKey::parse(&"ab".repeat(32)).unwrap();
        let vault = Keyring::open((*self.store).clone(), master)
            .await
            .unwrap()
            .vault();
        let ids = self.store.take_stock_ids(count).await.unwrap();
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
        };
        let outcome = self.store.import_stock(batch, By::service()).await.unwrap();
        assert!(matches!(outcome, ImportOutcome::Stored(imported) if imported.imported == count as u64));
    }

    /// A top-up, an order that is delivered at once, one that waits for its vendor; then the codes are read.
    async fn happen(&self) {
        let mut lane = self.store.open_lane(0).await.unwrap();
        let request = StockRequest {
            sku: self.sku.clone(),
            loaded: Vec::new(),
            enough: 2,
            not_before: Expiry::PAST,
        };
        let claimed = self.store.claim_stock(request).await.unwrap();
        let chunk = &claimed.chunks[0];
        let vouchers = chunk
            .vouchers
            .iter()
            .take(2)
            .map(|&(stock_id, expiry)| Allocation {
                voucher_id: VoucherId::generate(),
                sku: self.sku.clone(),
                voucher: Shelved {
                    expiry,
                    stock_id,
                    chunk_id: chunk.chunk_id,
                },
            });
        let at = SystemClock::new().now();
        let (first, second) = (OrderId::at(at), OrderId::at(at));
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
        let records = [self.booking(), self.order(delivered), self.order(pending)];
        let verdicts = lane.commit(1, &records).await.unwrap();
        assert!(
            verdicts
                .iter()
                .all(|verdict| matches!(verdict, Verdict::Committed(Some(_)))),
            "{verdicts:?}"
        );
        let retrieval = Retrieval {
            partner_id: self.partner.partner_id,
            order_id: first,
            credential_id: self.credential_id,
            address: "127.0.0.1".to_owned(),
            trace_id: "trace".to_owned(),
        };
        self.store.retrieve_codes(retrieval).await.unwrap();
    }

    fn priced(&self, quantity: u32) -> PricedOrder {
        let line = PricedLine {
            sku: self.sku.clone(),
            quantity,
            unit_price: self.sku.denomination,
            route: Route::Vendor,
            min_validity_days: 0,
            approval: Approval::Rule,
        };
        PricedOrder {
            total: self
                .sku
                .denomination
                .checked_mul(quantity)
                .unwrap()
                .of("USD".parse().unwrap()),
            lines: vec![line],
            fulfilment: Fulfilment::Auto,
            reference: None,
            metadata: None,
        }
    }

    fn booking(&self) -> Record {
        let transaction_id = TransactionId::generate();
        let movement = movement(transaction_id, LedgerKind::TopUp, 100_000, 0, None);
        self.record(201, transaction_id.to_string(), Keep::Forever, movement, None)
    }

    fn order(&self, order: Order) -> Record {
        let total = order.total.amount.minor();
        let pending = if order.vouchers.is_empty() { total } else { 0 };
        let movement = movement(
            TransactionId::debit_of(order.order_id),
            LedgerKind::Debit,
            -total,
            pending,
            Some(order.order_id),
        );
        let body = format!(r#"{{"order_id":"{}"}}"#, order.order_id);
        self.record(
            if pending == 0 { 201 } else { 202 },
            body,
            Keep::Day,
            movement,
            Some(order),
        )
    }

    fn record(
        &self,
        status: u16,
        body: String,
        keep: Keep,
        movement: Movement,
        order: Option<Order>,
    ) -> Record {
        let key = KeyHash(movement.transaction_id.as_uuid());
        let claim = KeyClaim {
            key,
            fingerprint: Fingerprint([7; 32]),
            answer: Answer {
                status,
                body: body.into(),
            },
            keep,
        };
        Record {
            partner_id: self.partner.partner_id,
            claim,
            events: order.as_ref().map(EventBundle::accepted),
            order,
            movement: Some(movement),
        }
    }
}

fn movement(
    transaction_id: TransactionId,
    kind: LedgerKind,
    amount: i64,
    pending: i64,
    order_id: Option<OrderId>,
) -> Movement {
    Movement {
        transaction_id,
        currency: "USD".parse().unwrap(),
        kind,
        amount: Amount::from_minor(amount),
        pending_orders: Amount::from_minor(pending),
        order_id,
        reference: None,
        booked_by: (kind == LedgerKind::TopUp).then(|| By::service().into()),
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
        route: Route::Vendor,
        approval: Approval::Rule,
        returnable: false,
        min_validity_days: 0,
        low_stock_at: 0,
        discontinued: false,
        updated_at: datetime!(2026-11-20 12:00 UTC),
    }
}
