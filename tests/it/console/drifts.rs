//! Reconciliation in the console: a day is compared, and its drift is resolved.

use vouchsafe_test_harness::{WAIT_TIMEOUT, eventually, text_of};

use super::{Browser, forms};
use crate::reconciliation::harness::ReconciliationHarness;

#[tokio::test]
async fn day_is_compared_and_its_drift_resolved() {
    let mut harness = ReconciliationHarness::start(&["sim-record-dropped"]).await;
    let mut partner = harness.operator.add_partner("100").await;
    harness
        .order_and_wait(&mut partner, &[("sim-record-dropped", 1)])
        .await;
    let [_, today] = harness.days().await;
    let day = format!("/reconciliation/{today}");
    let mut browser = Browser::of(&harness.service);
    assert!(
        browser
            .read("/reconciliation/2020-01-01")
            .await
            .contains("not compared yet")
    );
    let requested = browser
        .submit_and_follow(&format!("{day}/run"), &[("vendor", "")])
        .await;
    assert!(requested.contains("The comparison was requested."), "{requested}");
    let list = eventually("the drift", WAIT_TIMEOUT, async || {
        let list = Browser::of(&harness.service)
            .read("/drifts?resolution=pending")
            .await;
        list.contains("name=\"drift_id\"").then_some(list)
    })
    .await;
    let [form] = forms(&list)[..] else {
        panic!("{list}");
    };
    assert_eq!(form, "/drifts/resolve?resolution=pending");
    let drift_id = list.split("name=\"drift_id\" value=\"").nth(1).unwrap();
    let drift_id = drift_id.split('"').next().unwrap();
    let resolution = [
        ("drift_id", drift_id),
        ("resolution", "escalated"),
        ("reason", "  "),
    ];
    let refused = browser.submit(form, &resolution).await;
    assert_eq!(refused.status, 422);
    let kept = "<option selected>escalated</option>";
    assert!(text_of(&refused).contains(kept), "{}", text_of(&refused));
    let resolution = [
        ("drift_id", drift_id),
        ("resolution", "escalated"),
        ("reason", "asked the vendor"),
    ];
    let left = browser.submit_and_follow(form, &resolution).await;
    assert!(
        left.contains("The drift has its resolution.") && !left.contains(drift_id),
        "it is no longer pending: {left}"
    );
    let days = browser.read("/reconciliation").await;
    let link = format!("<a href=\"{day}\">");
    assert!(days.contains(&link), "{days}");
    let all = browser.read(&format!("/drifts?date={today}")).await;
    assert!(all.contains("asked the vendor"), "{all}");
}
