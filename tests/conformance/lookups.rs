//! Batched lookups of orders, wallets and feed pages: each concurrent lookup gets its own result.

use futures_util::future::join_all;
use vouchsafe_actors::ports::store::Store as _;
use vouchsafe_domain::ids::{EventId, PartnerId};
use vouchsafe_simulation::build;
use vouchsafe_simulation::conformance::Subject as _;
use vouchsafe_store::{FeedPage, FeedPosition};

use crate::codes::PartnerOrders;
use crate::subject::PgSubject;

/// Maximum events of a page.
const PAGE: usize = 5;

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_order_lookups_return_their_own_order() {
    let subject = PgSubject::new().await;
    let sizes: Vec<usize> = (0..30).map(|order| order % 4).collect();
    let fixture = PartnerOrders::create(&subject, &sizes).await;
    let other_partner = build::partner(2);
    let mut requests = Vec::new();
    for (order_id, held) in &fixture.orders {
        // Twice by the owner, and once by another partner.
        for reader in [fixture.partner, other_partner, fixture.partner] {
            requests.push((
                reader,
                *order_id,
                (reader == fixture.partner).then_some(held.len()),
            ));
        }
    }
    requests.push((fixture.partner, build::order_id("nobody's"), None));
    let lookups = requests
        .iter()
        .map(|(reader, order_id, _)| fixture.node.find_order(*reader, *order_id));
    for (read, (reader, order_id, expected)) in join_all(lookups).await.into_iter().zip(&requests) {
        let read = read.unwrap();
        let summary = read
            .as_ref()
            .map(|order| (order.partner_id, order.order_id, order.vouchers.len()));
        assert_eq!(summary, expected.map(|held| (*reader, *order_id, held)));
        let single = fixture.node.find_order(*reader, *order_id).await.unwrap();
        assert_eq!(format!("{read:?}"), format!("{single:?}"));
    }
    subject.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_wallet_lookups_return_their_own_wallets() {
    let subject = PgSubject::new().await;
    let node = subject.start("one").await;
    let partners: Vec<_> = (1..=40).map(build::partner).collect();
    for (partner, balance) in partners.iter().zip(1..).skip(1) {
        subject.add_partner(*partner).await;
        subject
            .top_up(build::usd_wallet(*partner), build::minor(balance * 100))
            .await;
    }
    let lookups = partners
        .iter()
        .chain(&partners)
        .map(|partner| node.list_wallets(*partner));
    for (position, wallets) in join_all(lookups).await.into_iter().enumerate() {
        let wallets = wallets.unwrap();
        let balances: Vec<_> = wallets.iter().map(|wallet| wallet.balance.amount).collect();
        match i64::try_from(position % partners.len()).unwrap() {
            0 => assert_eq!(balances, [], "a partner without a wallet"),
            number => assert_eq!(balances, [build::minor((number + 1) * 100)]),
        }
    }
    subject.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_feed_reads_return_their_own_page() {
    let subject = PgSubject::new().await;
    let fixture = PartnerOrders::create(&subject, &[1; 12]).await;
    let other_partner = build::partner(2);
    subject.add_partner(other_partner).await;
    let mut lane = fixture.node.open_lane(1).await.unwrap();
    let other_records = [
        build::top_up(build::usd_wallet(other_partner), "theirs", 1_000),
        build::pending_order(other_partner, "their order", 100),
    ];
    lane.commit(1, &other_records).await.unwrap();
    let events = read_whole_feed(&fixture, fixture.partner).await;
    assert!(events.len() >= 12, "{events:?}");
    let other_events = read_whole_feed(&fixture, other_partner).await;
    assert!((1..=PAGE).contains(&other_events.len()), "{other_events:?}");
    // The page after each event, for its partner and for another one, and the oldest page.
    let mut requests = Vec::new();
    for (position, event_id) in events.iter().enumerate() {
        let expected = events.iter().skip(position + 1).take(PAGE);
        let more = position + 1 + PAGE < events.len();
        let page = Some((expected.copied().collect::<Vec<_>>(), more));
        requests.push((fixture.partner, FeedPosition::After(*event_id), page));
        requests.push((other_partner, FeedPosition::After(*event_id), None));
        let oldest = events.iter().take(PAGE).copied().collect::<Vec<_>>();
        requests.push((fixture.partner, FeedPosition::Oldest, Some((oldest, true))));
        requests.push((
            other_partner,
            FeedPosition::Oldest,
            Some((other_events.clone(), false)),
        ));
    }
    let lookups = requests
        .iter()
        .map(|(reader, position, _)| fixture.node.read_feed(*reader, *position, PAGE));
    for (read, (reader, position, expected)) in join_all(lookups).await.into_iter().zip(&requests) {
        let actual = read.unwrap().map(|page| (event_ids(&page), page.has_more));
        assert_eq!(&actual, expected, "{reader:?}, {position:?}");
    }
    subject.remove().await;
}

/// All events of a partner's feed, by pagination.
async fn read_whole_feed(fixture: &PartnerOrders, partner: PartnerId) -> Vec<EventId> {
    let (mut events, mut position) = (Vec::new(), FeedPosition::Oldest);
    loop {
        let page = fixture
            .node
            .read_feed(partner, position, PAGE)
            .await
            .unwrap()
            .unwrap();
        events.extend(event_ids(&page));
        match events.last() {
            Some(last) if page.has_more => position = FeedPosition::After(*last),
            _ => return events,
        }
    }
}

fn event_ids(page: &FeedPage) -> Vec<EventId> {
    let letters = page.events.iter();
    letters.map(|event| event.events.event_id(event.number)).collect()
}
