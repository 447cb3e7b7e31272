//! Postgres storage: the engine's `Store` port, and the reads and writes of HTTP, CLI and background jobs.

#![allow(
    clippy::missing_errors_doc,
    reason = "`StoreError` says when an operation of the store fails"
)]

mod access;
mod availability;
mod cap_usage;
mod categories;
mod certification;
pub mod change_requests;
mod codes;
mod commit;
mod connection_budget;
mod continuity;
mod credentials;
mod data_keys;
mod deliveries;
mod deployment;
mod events;
pub mod grants;
mod idempotency_keys;
mod inventory;
mod key_rotation;
pub mod keyring;
mod lane;
mod node;
mod node_identity;
mod nodes;
mod orders;
mod overview;
mod partner_creation;
mod partners;
mod payouts;
mod products;
mod purchases;
mod quarantine;
mod rate_limit_usage;
mod reconciliation;
mod reencryption;
mod replication;
mod reserved_stock;
mod revocation;
mod rotation;
mod search;
mod service_role;
mod shared_limits;
mod stock;
mod stock_claims;
mod stock_demands;
mod transactions;
mod vendors;
mod waiting_orders;
mod wallets;
mod webhooks;

use tokio::runtime::Handle;
use vouchsafe_database::boxed;
use vouchsafe_security::environment::Environment;

use connection_class::ConnectionClass;
pub use vouchsafe_database::schema;
use vouchsafe_database::{batcher, connection_class, connection_pool, database, error};

pub use access::LoadedAccess;
pub use categories::{Categories, PutCategoryOutcome};
pub use certification::Observations;
pub use change_requests::ChangeRequests;
pub use codes::{CodeRetrieval, RetrievalOutcome, SealedVoucher};
pub use connection_budget::ConnectionBudget;
pub use credentials::{CertificationPolicy, Credentials, ENDED_DAYS, IssueOutcome, MAX_LIVE_CREDENTIALS};
pub use data_keys::{DataKeyError, DataKeySet, DataKeys};
pub use deliveries::{
    DeliveryLog, DueEndpoint, EndpointRoster, MAX_REPLAYED, PartitionChanges, PgOutbox, ReplayOutcome,
};
pub use deployment::PrepareError;
pub use events::{FEED_DAYS, FeedPage, FeedPosition};
pub use idempotency_keys::{KeySweep, StoredResponses};
pub use key_rotation::{
    DataKeyRow, KeyReport, NodeWrappingKeys, RewrapOutcome, create_data_key, list_keys, rewrap,
};
pub use node::PgNode;
pub use node_identity::{EndedRegistration, LEASE_S, NodeIdentity};
pub use nodes::Nodes;
pub use orders::Orders;
pub use partners::{PartnerChange, Partners};
pub use payouts::Payouts;
pub use products::{Products, PutProductOutcome};
pub use purchases::answers::PurchaseUpdate;
pub use purchases::view::EndPurchaseOutcome;
pub use purchases::{NewPurchase, Purchase, PurchaseWrites, Purchases};
pub use quarantine::{
    Quarantine, ReleaseGround, ReleaseOutcome, ReleasedPart, SoldVoucher, SoldVoucherOutcome, StockRelease,
};
pub use reconciliation::{
    ClaimedDay, Drifts, PAGE_ROWS as RECORDS_PAGE, ReconciliationOutcome, ReconciliationRun,
    ReconciliationStatus, Reconciliations, RecordsMessage,
};
pub use reencryption::{
    ReencryptedCode, ReencryptionBatch, ReencryptionRow, Reencryptions, RequestOutcome, StoredCode,
    request_reencryption,
};
pub use reserved_stock::Reservations;
pub use rotation::{RotationOutcome, RotationRequest, RotationResult};
pub use search::Search;
pub use shared_limits::SharedLimits;
pub use stock::{
    CodeMatch, ExpiryBatch, ImportBatch, ImportOutcome, ImportSummary, ImportTarget, NewStockIds, NewVoucher,
    Stock, StockBatch, StockOrigin, VoidOutcome, VoidTarget,
};
pub use transactions::Transactions;
pub use vendors::{PutVendorOutcome, VendorConfig, VendorConfigs, VendorWithCredential};
pub use vouchsafe_audit_log::{
    AuditActor, AuditCheckpoint, AuditLog, ChangedObjects, EXPORT_LEASE_TIME, ExportContent, ExportLease,
    ExportLeaseOutcome, ForgedGrant, RecentChanges, read_checkpoints,
};
pub use vouchsafe_database::connection_class::{ConnectionMetrics, ConnectionSettings};
pub use vouchsafe_database::database::Database;
pub use vouchsafe_database::database_url::{DatabaseUrlError, parse_database_url};
pub use vouchsafe_database::error::{InvalidMac, StoreError, describe, unavailable};
pub use vouchsafe_database::servers::Servers;
pub use vouchsafe_operators::grants::Grants;
pub use vouchsafe_operators::{self as operators, Operators};
pub use waiting_orders::{PgSkuLocks, WaitingOrders};
pub use webhooks::{MAX_WEBHOOKS, PutWebhookOutcome, PutWebhookRequest, WebhookSecretRotation, Webhooks};

/// Handle to Postgres: the database, and one type per kind of stored thing. All of a handle's statements use the connections of
/// one class: background jobs, partners or operators.
#[derive(Debug, Clone)]
pub struct PgStore {
    pub database: Database,
    pub audit_log: AuditLog,
    pub categories: Categories,
    pub change_requests: ChangeRequests,
    pub credentials: Credentials,
    pub data_keys: DataKeys,
    pub deliveries: DeliveryLog,
    pub drifts: Drifts,
    /// The key of the rows that grant access. The other handles of a store share it.
    pub grants: Grants,
    pub nodes: Nodes,
    pub observations: Observations,
    pub operators: Operators,
    pub orders: Orders,
    pub partners: Partners,
    pub payouts: Payouts,
    pub products: Products,
    pub purchases: Purchases,
    pub quarantine: Quarantine,
    pub reconciliations: Reconciliations,
    pub reencryptions: Reencryptions,
    pub reservations: Reservations,
    pub responses: StoredResponses,
    pub search: Search,
    pub stock: Stock,
    pub transactions: Transactions,
    pub vendors: VendorConfigs,
    pub waiting_orders: WaitingOrders,
    pub webhooks: Webhooks,
}

impl PgStore {
    /// Creates a store for background jobs without connecting. All database work runs on `runtime`.
    #[must_use]
    pub fn open(servers: impl Into<Servers>, runtime: Handle) -> Self {
        let metrics = ConnectionMetrics::default();
        Self::open_with(servers, runtime, ConnectionSettings::DEFAULT, &metrics)
    }

    /// Opens the store with these sizes and metrics of the connection classes.
    #[must_use]
    pub fn open_with(
        servers: impl Into<Servers>,
        runtime: Handle,
        settings: ConnectionSettings,
        metrics: &ConnectionMetrics,
    ) -> Self {
        Self::of(
            &Database::new(&servers.into(), runtime, settings, metrics),
            &Grants::default(),
        )
    }

    /// The same store on the connections for requests of partners.
    #[must_use]
    pub fn for_partners(&self) -> Self {
        Self::of(&self.database.on(ConnectionClass::Partners), &self.grants)
    }

    /// The same store on the connections for requests of operators.
    #[must_use]
    pub fn for_operators(&self) -> Self {
        Self::of(&self.database.on(ConnectionClass::Operators), &self.grants)
    }

    fn of(database: &Database, grants: &Grants) -> Self {
        Self {
            grants: grants.clone(),
            audit_log: AuditLog::new(database.clone()),
            categories: Categories(database.clone()),
            change_requests: ChangeRequests(database.clone(), grants.clone()),
            credentials: Credentials(database.clone(), grants.clone()),
            data_keys: DataKeys(database.clone()),
            deliveries: DeliveryLog(database.clone()),
            drifts: Drifts(database.clone()),
            nodes: Nodes(database.clone()),
            observations: Observations(database.clone()),
            operators: Operators::new(database.clone(), grants.clone()),
            orders: Orders(database.clone()),
            partners: Partners(database.clone(), grants.clone()),
            payouts: Payouts(database.clone()),
            products: Products(database.clone()),
            purchases: Purchases(database.clone()),
            quarantine: Quarantine(database.clone()),
            reconciliations: Reconciliations(database.clone()),
            reencryptions: Reencryptions(database.clone()),
            reservations: Reservations(database.clone()),
            responses: StoredResponses(database.clone()),
            search: Search(database.clone()),
            stock: Stock(database.clone()),
            transactions: Transactions(database.clone()),
            vendors: VendorConfigs(database.clone()),
            waiting_orders: WaitingOrders(database.clone()),
            webhooks: Webhooks(database.clone()),
            database: database.clone(),
        }
    }

    /// Compares the connections that this node needs with those that the server permits. The node has taken its incarnation.
    #[boxed]
    pub async fn connection_budget(&self, lanes: u16) -> Result<ConnectionBudget, StoreError> {
        connection_budget::load(&self.database, lanes).await
    }

    /// Checks the durability settings and the environment, migrates a sandbox database and checks the schema of a production
    /// database, and claims an unused database for `expected`.
    ///
    /// # Errors
    /// [`PrepareError`] when the database does not answer, belongs to the other environment, is not durable, or is not migrated.
    #[boxed]
    pub async fn prepare(&self, expected: Environment) -> Result<(), PrepareError> {
        deployment::prepare(&self.database, expected).await
    }
}
