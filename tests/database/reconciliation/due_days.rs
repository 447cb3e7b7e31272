//! Due days and their claims, by the database's clock.

use sqlx::Executor as _;
use time::{Date, Duration};
use vouchsafe_domain::reconciliation::result::RecordsSource;
use vouchsafe_store::AuditActor;

use super::test_shop::{TestShop, at, vendor_record};

/// Returns the last day that is over by some margin.
async fn last_day(shop: &TestShop) -> Date {
    let now = shop.store.reconciliations.database_time().await.unwrap();
    (now - Duration::hours(2)).date().previous_day().unwrap()
}

async fn use_http_adapter(shop: &mut TestShop) {
    let vendor = "UPDATE vendors
                     SET adapter = 'http', url = 'https://vendor.example', key_id = 1, nonce = substr(sha256('n'), 1, 12),
                         ciphertext = 'sealed'
                   WHERE vendor_id = 'acme'";
    shop.connection.execute(vendor).await.unwrap();
}

/// Claims due days until none is left.
async fn claim_due_days(shop: &TestShop) -> Vec<Date> {
    let mut days = Vec::new();
    while let Some(claimed) = shop.store.reconciliations.claim(Vec::new()).await.unwrap() {
        days.push(claimed.day);
    }
    days
}

#[tokio::test(flavor = "multi_thread")]
async fn missed_days_are_caught_up_once_within_limit() {
    let mut shop = TestShop::open().await;
    use_http_adapter(&mut shop).await;
    assert_eq!(claim_due_days(&shop).await, [], "nothing has been bought yet");
    let last = last_day(&shop).await;
    shop.add_purchase("acme", at(last - Duration::days(2), 12)).await;
    let expected = [last - Duration::days(2), last - Duration::DAY, last];
    assert_eq!(claim_due_days(&shop).await, expected);
    assert_eq!(claim_due_days(&shop).await, [], "each day must be claimed once");
    shop.add_purchase("acme", at(last - Duration::days(40), 12)).await;
    let caught_up: Vec<Date> = (3..7).rev().map(|ago| last - Duration::days(ago)).collect();
    assert_eq!(claim_due_days(&shop).await, caught_up);
    shop.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_claims_take_each_day_once() {
    let mut shop = TestShop::open().await;
    use_http_adapter(&mut shop).await;
    let last = last_day(&shop).await;
    shop.add_purchase("acme", at(last - Duration::days(40), 12)).await;
    let claims = (0..8).map(|_| shop.store.reconciliations.claim(Vec::new()));
    let mut days = Vec::new();
    for claimed in futures_util::future::join_all(claims).await {
        days.extend(claimed.unwrap().map(|claimed| claimed.day));
    }
    days.extend(claim_due_days(&shop).await);
    days.sort_unstable();
    let expected: Vec<Date> = (0..7).rev().map(|ago| last - Duration::days(ago)).collect();
    assert_eq!(days, expected);
    shop.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_day_backs_off_and_requested_day_is_due_immediately() {
    let mut shop = TestShop::open().await;
    use_http_adapter(&mut shop).await;
    let last = last_day(&shop).await;
    shop.add_purchase("acme", at(last, 12)).await;
    let mut delays = Vec::new();
    for _ in 0..8 {
        let request =
            shop.store
                .reconciliations
                .request(last, vec!["acme".to_owned()], AuditActor::service());
        request.await.unwrap();
        assert_eq!(claim_due_days(&shop).await, [last]);
        let failure =
            shop.store
                .reconciliations
                .record_failure("acme".to_owned(), last, "no answer".to_owned());
        failure.await.unwrap();
        let now = shop.store.reconciliations.database_time().await.unwrap();
        let found = shop.store.reconciliations.list(last).await.unwrap().remove(0);
        delays.push((found.next_attempt_at.unwrap() - now + Duration::seconds(1)).whole_minutes());
        assert_eq!(found.last_error.as_deref(), Some("no answer"));
        assert_eq!(claim_due_days(&shop).await, []);
    }
    assert_eq!(delays, [1, 2, 4, 8, 16, 32, 60, 60]);
    let mut run = TestShop::run_for(last);
    run.source = RecordsSource::Http;
    shop.try_compare(run, vec![vendor_record(last, "A-1", None)])
        .await;
    let found = shop.store.reconciliations.list(last).await.unwrap().remove(0);
    assert_eq!(
        (found.attempts, found.last_error, found.next_attempt_at),
        (0, None, None)
    );
    assert_eq!(claim_due_days(&shop).await, [], "the day is reconciled");
    let status = shop
        .store
        .reconciliations
        .list_statuses()
        .await
        .unwrap()
        .remove(0);
    assert_eq!((status.open, status.last_day), (1, Some(last)));
    shop.close().await;
}
