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
mod erasure;
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
mod replica;
mod replication;
mod reserved_stock;
mod revocation;
mod rotation;
mod sandbox_clocks;
mod service_role;
mod shared_limits;
mod stock;
mod stock_claims;
mod stock_demands;
mod store;
mod transactions;
mod vendors;
mod waiting_orders;
mod wallets;
mod webhooks;

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
    list_attempt_days,
};
pub use deployment::PrepareError;
pub use erasure::{ErasedCount, ErasureOutcome, Erasures};
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
pub use replica::{MAX_REPLICA_LAG, Replica};
pub use reserved_stock::Reservations;
pub use rotation::{RotationOutcome, RotationRequest, RotationResult};
pub use sandbox_clocks::{AdvancedClock, SandboxClockStore};
pub use shared_limits::SharedLimits;
pub use stock::{
    CodeMatch, ExpiryBatch, ImportBatch, ImportOutcome, ImportSummary, ImportTarget, NewStockIds, NewVoucher,
    Stock, StockBatch, StockOrigin, VoidOutcome, VoidTarget,
};
pub use store::PgStore;
pub use transactions::Transactions;
pub use vendors::{PutVendorOutcome, VendorConfig, VendorConfigs, VendorWithCredential};
pub use vouchsafe_audit_log::{
    AuditActor, AuditCheckpoint, AuditLog, ChangedObjects, EXPORT_LEASE_TIME, ExportContent, ExportLease,
    ExportLeaseOutcome, ForgedGrant, RecentChanges, read_archived_checkpoints, read_checkpoints,
};
pub use vouchsafe_database::connection_class::{ConnectionMetrics, ConnectionSettings};
pub use vouchsafe_database::database::Database;
pub use vouchsafe_database::database_url::{DatabaseUrlError, parse_database_url};
pub use vouchsafe_database::error::{InvalidMac, StoreError, describe, unavailable};
pub use vouchsafe_database::schema;
pub use vouchsafe_database::servers::Servers;
pub use vouchsafe_operators::bulk_jobs;
pub use vouchsafe_operators::grants::Grants;
pub use vouchsafe_operators::{self as operators, Operators};
pub use vouchsafe_reports::{
    PeriodCounts, SalesRow, Search, Traffic, TrafficRow, WebhookHealth, WebhookHours,
};
pub use waiting_orders::{PgSkuLocks, WaitingOrders};
pub use webhooks::{MAX_WEBHOOKS, PutWebhookOutcome, PutWebhookRequest, WebhookSecretRotation, Webhooks};
