//! Seeded reconciliation: the vendor's records have two vouchers that are unknown here, one of them for the
//! pending order.

use tokio::sync::mpsc::channel;
use vouchsafe_domain::ids::OrderId;
use vouchsafe_domain::purchase::PurchaseKey;
use vouchsafe_domain::reconciliation::drift::{DriftFilter, DriftResolution, ResolveDriftRequest};
use vouchsafe_domain::reconciliation::result::RecordsSource;
use vouchsafe_domain::reconciliation::{RecordLine, VoucherTerms};
use vouchsafe_store::{AuditActor, ReconciliationOutcome, ReconciliationRun, RecordsMessage};

use super::Builder;

impl Builder {
    pub(super) async fn record_reconciliation(&self, order_id: OrderId) {
        let now = self.store.reconciliations.database_time().await.unwrap();
        let due = self.store.purchases.list_due("nobody".to_owned(), 1);
        let due = due.await.unwrap().remove(0);
        assert_eq!(due.order_id, order_id);
        let writes = self.store.purchases.start_writes("node-1".to_owned());
        let claimed = writes.claim(due.purchase_id);
        claimed.await.unwrap().expect("no other node has claimed it");
        let line = |reference: &str, purchase: Option<PurchaseKey>| RecordLine {
            reference: reference.parse().unwrap(),
            terms: VoucherTerms {
                purchase,
                product_id: self.sku.product_id.clone(),
                denomination: self.sku.denomination.of("USD".parse().unwrap()),
            },
            sold_at: now,
        };
        let run = ReconciliationRun {
            vendor: "nobody".to_owned(),
            day: now.date(),
            source: RecordsSource::Http,
            started_at: now,
            actor: None,
        };
        let (sender, intake) = channel(2);
        let lines = vec![line("A-1", Some(PurchaseKey(due.purchase_id))), line("A-2", None)];
        sender.send(RecordsMessage::Records(lines)).await.unwrap();
        sender.send(RecordsMessage::End).await.unwrap();
        let reconciled = self.store.reconciliations.reconcile(run, intake).await.unwrap();
        assert_eq!(reconciled, ReconciliationOutcome::Completed);
        let drifts = self.store.drifts.list(DriftFilter::default(), None, 10);
        let drifts = drifts.await.unwrap();
        assert_eq!(drifts.len(), 2);
        let resolved = ResolveDriftRequest {
            drift_id: drifts[0].drift_id,
            resolution: DriftResolution::Escalated,
            reason: "asked the vendor".to_owned(),
        };
        self.store
            .drifts
            .resolve(resolved, AuditActor::service())
            .await
            .unwrap();
    }
}
