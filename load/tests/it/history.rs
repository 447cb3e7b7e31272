//! Tests of recording and checking histories of a fake service with defects.

use vouchsafe_api_client::history::check::{HistorySummary, Violation, check};
use vouchsafe_api_client::history::recorder::{Intent, Recorder};
use vouchsafe_api_client::partner::PartnerClient;

use crate::fake::{Defect, FakeService};

const BODY: &[u8] = br#"{"items":[{"product_id":"sbx-instant","denomination":25,"quantity":1}]}"#;
const PARTNER: &str = "sandbox";

/// Records ten orders, each repeated, read back, and with its codes fetched.
async fn record_history(defect: Defect) -> Result<HistorySummary, Violation> {
    let service = FakeService::start(defect);
    let mut client = PartnerClient::new(&service.url, FakeService::credentials()).unwrap();
    let recorder = Recorder::in_memory();
    for number in 1..=10 {
        let (key, order_id) = (format!("key-{number}"), format!("ord_{number:032x}"));
        for _ in 0..2 {
            let pending = recorder.invoke(Intent::order(0, PARTNER, &key, BODY)).unwrap();
            recorder
                .complete(pending, &client.order(&key, BODY).await)
                .unwrap();
        }
        let pending = recorder.invoke(Intent::get_order(0, PARTNER, &order_id)).unwrap();
        recorder
            .complete(pending, &client.get(&format!("/orders/{order_id}")).await)
            .unwrap();
        let pending = recorder.invoke(Intent::codes(0, PARTNER, &order_id)).unwrap();
        recorder
            .complete(pending, &client.get_codes(&order_id).await)
            .unwrap();
    }
    check(&recorder.history())
}

#[tokio::test]
async fn correct_service_has_consistent_history() {
    for defect in [Defect::None, Defect::HangsUp] {
        let summary = record_history(defect).await.unwrap();
        assert_eq!((summary.acknowledged_orders, summary.read_backs), (10, 10));
        assert_eq!((summary.vouchers, summary.codes), (10, 10));
        assert_eq!(
            summary.settled_by_replay,
            if defect == Defect::HangsUp { 2 } else { 0 }
        );
    }
}

#[tokio::test]
async fn each_defect_is_a_violation() {
    type Expected = fn(&Violation) -> bool;
    let cases: [(Defect, Expected); 7] = [
        (Defect::SellsVoucherTwice, |v| {
            matches!(v, Violation::DuplicateVoucher { .. })
        }),
        (Defect::SellsCodeTwice, |v| {
            matches!(v, Violation::DuplicateCode { .. })
        }),
        (Defect::LosesOrder, |v| matches!(v, Violation::OrderLost { .. })),
        (Defect::ChangesOrder, |v| {
            matches!(
                v,
                Violation::OrderChanged {
                    field: "total_amount",
                    ..
                }
            )
        }),
        (Defect::ChangesReplay, |v| {
            matches!(v, Violation::ResponsesDiffer { .. })
        }),
        (Defect::MalformedOrder, |v| {
            matches!(v, Violation::MalformedResponse { .. })
        }),
        (Defect::Overloaded, |v| matches!(v, Violation::Unsettled { .. })),
    ];
    for (defect, expected) in cases {
        let violation = record_history(defect).await.unwrap_err();
        assert!(expected(&violation), "{defect:?}: {violation}");
    }
}
