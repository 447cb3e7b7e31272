//! Handle to Postgres with a type per kind of stored thing.

use tokio::runtime::Handle;
use vouchsafe_audit_log::AuditLog;
use vouchsafe_database::boxed;
use vouchsafe_database::connection_class::{ConnectionClass, ConnectionMetrics, ConnectionSettings};
use vouchsafe_database::database::Database;
use vouchsafe_database::error::StoreError;
use vouchsafe_database::servers::Servers;
use vouchsafe_operators::Operators;
use vouchsafe_operators::bulk_jobs::BulkJobs;
use vouchsafe_operators::grants::Grants;
use vouchsafe_reports::{Search, Traffic, WebhookHealth};
use vouchsafe_security::environment::Environment;

use super::categories::Categories;
use super::certification::Observations;
use super::change_requests::ChangeRequests;
use super::connection_budget::{self, ConnectionBudget};
use super::credentials::Credentials;
use super::data_keys::DataKeys;
use super::deliveries::DeliveryLog;
use super::deployment::{self, PrepareError};
use super::erasure::Erasures;
use super::idempotency_keys::StoredResponses;
use super::nodes::Nodes;
use super::orders::Orders;
use super::partners::Partners;
use super::payouts::Payouts;
use super::products::Products;
use super::purchases::Purchases;
use super::quarantine::Quarantine;
use super::reconciliation::{Drifts, Reconciliations};
use super::reencryption::Reencryptions;
use super::reserved_stock::Reservations;
use super::sandbox_clocks::SandboxClockStore;
use super::stock::Stock;
use super::transactions::Transactions;
use super::vendors::VendorConfigs;
use super::waiting_orders::WaitingOrders;
use super::webhooks::Webhooks;

/// Handle to Postgres: the database, and one type per kind of stored thing. All of a handle's statements use
/// the connections of one class: background jobs, partners or operators.
#[derive(Debug, Clone)]
pub struct PgStore {
    pub database: Database,
    pub audit_log: AuditLog,
    pub bulk_jobs: BulkJobs,
    pub categories: Categories,
    pub change_requests: ChangeRequests,
    pub credentials: Credentials,
    pub data_keys: DataKeys,
    pub deliveries: DeliveryLog,
    pub drifts: Drifts,
    pub erasures: Erasures,
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
    pub sandbox_clocks: SandboxClockStore,
    pub search: Search,
    pub stock: Stock,
    pub traffic: Traffic,
    pub webhook_health: WebhookHealth,
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
            bulk_jobs: BulkJobs::new(database.clone()),
            categories: Categories(database.clone()),
            change_requests: ChangeRequests(database.clone(), grants.clone()),
            credentials: Credentials(database.clone(), grants.clone()),
            data_keys: DataKeys(database.clone()),
            deliveries: DeliveryLog(database.clone()),
            drifts: Drifts(database.clone()),
            erasures: Erasures(database.clone()),
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
            sandbox_clocks: SandboxClockStore(database.clone()),
            search: Search::new(database.clone()),
            stock: Stock(database.clone()),
            traffic: Traffic::new(database.clone()),
            webhook_health: WebhookHealth::new(database.clone()),
            transactions: Transactions(database.clone()),
            vendors: VendorConfigs(database.clone()),
            waiting_orders: WaitingOrders(database.clone()),
            webhooks: Webhooks(database.clone()),
            database: database.clone(),
        }
    }

    /// Compares the connections that this node needs with those that the server permits. The node has taken
    /// its incarnation.
    #[boxed]
    pub async fn connection_budget(&self, lanes: u16) -> Result<ConnectionBudget, StoreError> {
        connection_budget::load(&self.database, lanes).await
    }

    /// Checks the durability settings and the environment, migrates a sandbox database and checks the schema
    /// of a production database, and claims an unused database for `expected`.
    ///
    /// # Errors
    /// [`PrepareError`] when the database does not answer, belongs to the other environment, is not durable,
    /// or is not migrated.
    #[boxed]
    pub async fn prepare(&self, expected: Environment) -> Result<(), PrepareError> {
        deployment::prepare(&self.database, expected).await
    }
}
