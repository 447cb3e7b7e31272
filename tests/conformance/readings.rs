//! Orders, wallets and pages of feeds that are read at once: each is answered with its own.

use futures_util::future::join_all;
use vouchsafe::store::{FeedPage, FeedPlace};
use vouchsafe_actors::domain::ids::{EventId, PartnerId};
use vouchsafe_actors::store::Store as _;
use vouchsafe_actors::testing::build;
use vouchsafe_actors::testing::conformance::Subject as _;

use crate::codes::Shop;
use crate::subject::PgSubject;

/// How many events a page has at most.
const PAGE: usize = 5;

#[tokio::test(flavor = "multi_thread")]
async fn orders_that_are_read_at_once_are_each_their_own() {
    let subject = PgSubject::new().await;
    let sizes: Vec<usize> = (0..30).map(|order| order % 4).collect();
    let shop = Shop::open(&subject, &sizes).await;
    let stranger = build::partner(2);
    let mut asked = Vec::new();
    for (order_id, held) in &shop.orders {
        // Twice, and by somebody whose it is not.
        for reader in [shop.partner, stranger, shop.partner] {
            asked.push((reader, *order_id, (reader == shop.partner).then_some(held.len())));
        }
    }
    asked.push((shop.partner, build::order_id("nobody's"), None));
    let readings = asked
        .iter()
        .map(|(reader, order_id, _)| shop.node.find_order(*reader, *order_id));
    for (read, (reader, order_id, expected)) in join_all(readings).await.into_iter().zip(&asked) {
        let read = read.unwrap();
        let seen = read
            .as_ref()
            .map(|order| (order.partner_id, order.order_id, order.vouchers.len()));
        assert_eq!(seen, expected.map(|held| (*reader, *order_id, held)));
        let by_itself = shop.node.find_order(*reader, *order_id).await.unwrap();
        assert_eq!(format!("{read:?}"), format!("{by_itself:?}"));
    }
    subject.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn wallets_that_are_read_at_once_are_each_their_own() {
    let subject = PgSubject::new().await;
    let node = subject.start("one").await;
    let partners: Vec<_> = (1..=40).map(build::partner).collect();
    for (partner, balance) in partners.iter().zip(1..).skip(1) {
        subject.add_partner(*partner).await;
        subject
            .top_up(build::usd_of(*partner), build::minor(balance * 100))
            .await;
    }
    let readings = partners
        .iter()
        .chain(&partners)
        .map(|partner| node.list_wallets(*partner));
    for (place, wallets) in join_all(readings).await.into_iter().enumerate() {
        let balances: Vec<_> = wallets.unwrap().iter().map(|wallet| wallet.balance).collect();
        match i64::try_from(place % partners.len()).unwrap() {
            0 => assert_eq!(balances, [], "a partner without a wallet"),
            number => assert_eq!(balances, [build::minor((number + 1) * 100)]),
        }
    }
    subject.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_feeds_that_are_read_at_once_are_each_their_own() {
    let subject = PgSubject::new().await;
    let shop = Shop::open(&subject, &[1; 12]).await;
    let stranger = build::partner(2);
    subject.add_partner(stranger).await;
    let mut lane = shop.node.open_lane(1).await.unwrap();
    let theirs = [
        build::top_up(build::usd_of(stranger), "theirs", 1_000),
        build::pending(stranger, "their order", 100),
    ];
    lane.commit(1, &theirs).await.unwrap();
    let events = all(&shop, shop.partner).await;
    assert!(events.len() >= 12, "{events:?}");
    let theirs = all(&shop, stranger).await;
    assert!((1..=PAGE).contains(&theirs.len()), "{theirs:?}");
    // What follows each event, for its partner and for another; and what the oldest are.
    let mut asked = Vec::new();
    for (place, event_id) in events.iter().enumerate() {
        let expected = events.iter().skip(place + 1).take(PAGE);
        let more = place + 1 + PAGE < events.len();
        let page = Some((expected.copied().collect::<Vec<_>>(), more));
        asked.push((shop.partner, FeedPlace::After(*event_id), page));
        asked.push((stranger, FeedPlace::After(*event_id), None));
        let oldest = events.iter().take(PAGE).copied().collect::<Vec<_>>();
        asked.push((shop.partner, FeedPlace::Oldest, Some((oldest, true))));
        asked.push((stranger, FeedPlace::Oldest, Some((theirs.clone(), false))));
    }
    let readings = asked
        .iter()
        .map(|(reader, place, _)| shop.node.read_feed(*reader, *place, PAGE));
    for (read, (reader, place, expected)) in join_all(readings).await.into_iter().zip(&asked) {
        let seen = read.unwrap().map(|page| (ids(&page), page.more));
        assert_eq!(&seen, expected, "{reader:?}, {place:?}");
    }
    subject.remove().await;
}

/// Every event of a partner's feed, read page by page.
async fn all(shop: &Shop, partner: PartnerId) -> Vec<EventId> {
    let (mut events, mut place) = (Vec::new(), FeedPlace::Oldest);
    loop {
        let page = shop.node.read_feed(partner, place, PAGE).await.unwrap().unwrap();
        events.extend(ids(&page));
        match events.last() {
            Some(last) if page.more => place = FeedPlace::After(*last),
            _ => return events,
        }
    }
}

fn ids(page: &FeedPage) -> Vec<EventId> {
    let letters = page.letters.iter();
    letters
        .map(|letter| letter.told.event_id(letter.number))
        .collect()
}
