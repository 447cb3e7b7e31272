//! Reconciliation fixture: a database with purchases and vouchers, and vendor records.

use sqlx::{Executor as _, PgConnection};
use time::{Date, OffsetDateTime, Time};
use tokio::runtime::Handle;
use tokio::sync::mpsc::channel;
use uuid::Uuid;
use vouchsafe_domain::money::Amount;
use vouchsafe_domain::purchase::PurchaseKey;
use vouchsafe_domain::reconciliation::drift::{Drift, DriftFilter, DriftResolution, ResolveDriftRequest};
use vouchsafe_domain::reconciliation::result::{ReconciliationSummary, RecordsSource};
use vouchsafe_domain::reconciliation::{RecordLine, VoucherTerms};
use vouchsafe_store::{AuditActor, PgStore, ReconciliationOutcome, ReconciliationRun, RecordsMessage};
use vouchsafe_verify as verify;

use vouchsafe_test_harness::Database;

pub(crate) const VENDOR: &str = "acme";

pub(crate) struct TestShop {
    pub(crate) database: Database,
    pub(crate) store: PgStore,
    pub(crate) connection: PgConnection,
}

/// Returns a vendor record sold at noon.
pub(crate) fn vendor_record(day: Date, reference: &str, purchase: Option<Uuid>) -> RecordLine {
    RecordLine {
        reference: reference.parse().unwrap(),
        terms: VoucherTerms {
            purchase: purchase.map(PurchaseKey),
            product_id: "game-us".parse().unwrap(),
            denomination: Amount::from_minor(2_500).of("USD".parse().unwrap()),
        },
        sold_at: at(day, 12),
    }
}

pub(crate) fn at(day: Date, hour: u8) -> OffsetDateTime {
    day.with_time(Time::from_hms(hour, 0, 0).unwrap()).assume_utc()
}

impl TestShop {
    pub(crate) async fn open() -> Self {
        let database = Database::create().await;
        let store = PgStore::open(database.service_options(), Handle::current());
        let mut connection = database.connect().await;
        // Orders and allocations are not needed here.
        let vendor = "INSERT INTO vendors (vendor_id, adapter, concurrency) VALUES ('acme', 'manual', 1)";
        connection.execute(vendor).await.unwrap();
        Self {
            database,
            store,
            connection,
        }
    }

    /// Adds a purchase and returns its id.
    pub(crate) async fn add_purchase(&mut self, vendor: &str, requested_at: OffsetDateTime) -> Uuid {
        let purchase_id = Uuid::now_v7();
        sqlx::query(
            "INSERT INTO purchases (purchase_id, partner_id, order_id, line, vendor, product_id, denomination, currency,
                                    quantity, expiry_policy, requested_at, ended)
             VALUES ($1, gen_random_uuid(), gen_random_uuid(), 0, $2, 'game-us', 2500, 'USD', 1000, '{\"type\":\"NONE\"}', $3,
                     true)",
        )
        .bind(purchase_id)
        .bind(vendor)
        .bind(requested_at)
        .execute(&mut self.connection)
        .await
        .unwrap();
        purchase_id
    }

    /// Adds received vouchers of a purchase with references `{prefix}1`, `{prefix}2` …
    pub(crate) async fn add_vouchers(
        &mut self,
        purchase_id: Uuid,
        prefix: &str,
        count: i32,
        bought_at: OffsetDateTime,
    ) {
        sqlx::query(
            "INSERT INTO codes (code_id, product_id, denomination, blind_index, code_index, key_id, nonce, ciphertext,
                                purchase_id, vendor_reference, bought_at)
             SELECT nextval('code_ids'), 'game-us', 2500, sha256(convert_to($1::text || $2 || n, 'UTF8')),
                    sha256(convert_to('code ' || $1::text || $2 || n, 'UTF8')), 1,
                    substr(sha256('nonce'), 1, 12), 'sealed', $1, $2 || n, $4
               FROM generate_series(1, $3) AS n",
        )
        .bind(purchase_id)
        .bind(prefix)
        .bind(count)
        .bind(bought_at)
        .execute(&mut self.connection)
        .await
        .unwrap();
    }

    /// Returns the comparison of a complete day.
    pub(crate) fn run_for(day: Date) -> ReconciliationRun {
        ReconciliationRun {
            vendor: VENDOR.to_owned(),
            day,
            source: RecordsSource::Http,
            started_at: at(day, 2) + time::Duration::DAY,
            actor: None,
        }
    }

    /// Compares a day with these records; asserts completion.
    pub(crate) async fn compare(&self, day: Date, lines: Vec<RecordLine>) -> ReconciliationSummary {
        assert_eq!(
            self.try_compare(Self::run_for(day), lines).await,
            ReconciliationOutcome::Completed
        );
        self.summary(day).await
    }

    pub(crate) async fn try_compare(
        &self,
        run: ReconciliationRun,
        lines: Vec<RecordLine>,
    ) -> ReconciliationOutcome {
        let (sender, intake) = channel(lines.len() + 1);
        for line in lines {
            sender.send(RecordsMessage::Records(vec![line])).await.unwrap();
        }
        sender.send(RecordsMessage::End).await.unwrap();
        self.store.reconciliations.reconcile(run, intake).await.unwrap()
    }

    pub(crate) async fn summary(&self, day: Date) -> ReconciliationSummary {
        let statuses = self.store.reconciliations.list(day).await.unwrap();
        statuses[0].compared.as_ref().unwrap().summary
    }

    /// Returns the drifts of a day, sorted by reference.
    pub(crate) async fn drifts(&self, day: Date) -> Vec<Drift> {
        let filter = DriftFilter {
            day: Some(day),
            ..DriftFilter::default()
        };
        let mut drifts = self.store.drifts.list(filter, None, 10_000).await.unwrap();
        drifts.sort_by(|one, other| one.reference.cmp(&other.reference));
        drifts
    }

    pub(crate) async fn drift_kinds(&self, day: Date) -> Vec<(String, &'static str)> {
        let drifts = self.drifts(day).await.into_iter();
        drifts
            .map(|drift| (drift.reference, drift.kind.into_str()))
            .collect()
    }

    pub(crate) async fn resolve(&self, drift: &Drift) -> Drift {
        let resolved = ResolveDriftRequest {
            drift_id: drift.drift_id,
            resolution: DriftResolution::Resolved,
            reason: "the vendor has paid it back".to_owned(),
        };
        let drift = self
            .store
            .drifts
            .resolve(resolved, AuditActor::service())
            .await
            .unwrap();
        drift.unwrap()
    }

    /// Asserts the reconciliation invariants and removes the database.
    pub(crate) async fn close(mut self) {
        let findings = verify::check(&mut self.connection).await.unwrap();
        let relevant = findings.iter().filter(|finding| {
            finding.name.starts_with("reconciliation.") || finding.name.starts_with("drift.")
        });
        // The fixture has no orders.
        let relevant: Vec<_> = relevant
            .filter(|finding| finding.name != "reconciliation.orders")
            .collect();
        assert_eq!(relevant.len(), 4);
        assert!(relevant.iter().all(|finding| finding.holds), "{relevant:?}");
        drop(self.connection);
        self.database.remove().await;
    }
}
