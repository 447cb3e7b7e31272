//! Which day is due, and who takes it? By the database's clock, whatever ours says.

use sqlx::Executor as _;
use time::{Date, Duration};
use vouchsafe::store::{By, Source};

use crate::shop::{Shop, at, line};

/// The last day that is over for a while.
async fn last_day(shop: &Shop) -> Date {
    let now = shop.store.moment().await.unwrap();
    (now - Duration::hours(2)).date().previous_day().unwrap()
}

async fn over_http(shop: &mut Shop) {
    let vendor = "UPDATE vendors
                     SET adapter = 'http', url = 'https://vendor.example', key_id = 1, nonce = substr(sha256('n'), 1, 12),
                         ciphertext = 'sealed'
                   WHERE vendor_id = 'acme'";
    shop.connection.execute(vendor).await.unwrap();
}

/// Takes what is due until nothing is.
async fn taken(shop: &Shop) -> Vec<Date> {
    let mut days = Vec::new();
    while let Some(claimed) = shop.store.claim_reconciliation(Vec::new()).await.unwrap() {
        days.push(claimed.day);
    }
    days
}

#[tokio::test(flavor = "multi_thread")]
async fn days_that_were_missed_are_caught_up_with_once_and_not_for_ever() {
    let mut shop = Shop::open().await;
    over_http(&mut shop).await;
    assert_eq!(taken(&shop).await, [], "nothing was bought yet");
    let last = last_day(&shop).await;
    shop.purchase("acme", at(last - Duration::days(2), 12)).await;
    let expected = [last - Duration::days(2), last - Duration::DAY, last];
    assert_eq!(taken(&shop).await, expected);
    assert_eq!(taken(&shop).await, [], "each is taken once");
    shop.purchase("acme", at(last - Duration::days(40), 12)).await;
    let caught_up: Vec<Date> = (3..7).rev().map(|ago| last - Duration::days(ago)).collect();
    assert_eq!(taken(&shop).await, caught_up);
    shop.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_nodes_never_take_the_same_day() {
    let mut shop = Shop::open().await;
    over_http(&mut shop).await;
    let last = last_day(&shop).await;
    shop.purchase("acme", at(last - Duration::days(40), 12)).await;
    let takes = (0..8).map(|_| shop.store.claim_reconciliation(Vec::new()));
    let mut days = Vec::new();
    for claimed in futures_util::future::join_all(takes).await {
        days.extend(claimed.unwrap().map(|claimed| claimed.day));
    }
    days.extend(taken(&shop).await);
    days.sort_unstable();
    let expected: Vec<Date> = (0..7).rev().map(|ago| last - Duration::days(ago)).collect();
    assert_eq!(days, expected);
    shop.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_failed_is_put_off_for_longer_each_time_and_what_is_wanted_is_due_at_once() {
    let mut shop = Shop::open().await;
    over_http(&mut shop).await;
    let last = last_day(&shop).await;
    shop.purchase("acme", at(last, 12)).await;
    let mut pauses = Vec::new();
    for _ in 0..8 {
        let wanted = shop
            .store
            .want_reconciliation(last, vec!["acme".to_owned()], By::service());
        wanted.await.unwrap();
        assert_eq!(taken(&shop).await, [last]);
        let noted = shop
            .store
            .note_unreconciled("acme".to_owned(), last, "no answer".to_owned());
        noted.await.unwrap();
        let now = shop.store.moment().await.unwrap();
        let found = shop.store.reconciliations_of(last).await.unwrap().remove(0);
        pauses.push((found.next_at.unwrap() - now + Duration::seconds(1)).whole_minutes());
        assert_eq!(found.last_word.as_deref(), Some("no answer"));
        assert_eq!(taken(&shop).await, []);
    }
    assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 60, 60]);
    let mut books = Shop::books(last);
    books.source = Source::Http;
    shop.try_to(books, vec![line(last, "A-1", None)]).await;
    let found = shop.store.reconciliations_of(last).await.unwrap().remove(0);
    assert_eq!((found.attempts, found.last_word, found.next_at), (0, None, None));
    assert_eq!(taken(&shop).await, [], "it is done");
    let standing = shop.store.reconciliation_standings().await.unwrap().remove(0);
    assert_eq!((standing.open, standing.last_day), (1, Some(last)));
    shop.close().await;
}
