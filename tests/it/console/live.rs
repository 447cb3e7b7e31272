//! Live tables of the console, and what they link to.

use hyper::Method;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use vouchsafe_test_harness::{Operator, WAIT_TIMEOUT, eventually, expect_success, shared};

use super::Browser;

/// Reads the feed of the pages until it has this text.
async fn read_feed_until(text: &str) -> String {
    let service = shared();
    let mut stream = TcpStream::connect(service.admin_address()).await.unwrap();
    let head = format!(
        "GET /live HTTP/1.1\r\nhost: vouchsafe.test\r\nauthorization: Bearer {}\r\naccept: text/event-stream\r\n\r\n",
        service.operator_token()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut received = Vec::new();
    let read = async {
        loop {
            let count = stream.read_buf(&mut received).await.unwrap();
            let feed = String::from_utf8_lossy(&received).into_owned();
            assert!(count > 0, "the feed ended: {feed}");
            if feed.contains(text) {
                return feed;
            }
        }
    };
    tokio::time::timeout(WAIT_TIMEOUT, read)
        .await
        .expect("the event of the feed")
}

#[tokio::test]
async fn feed_has_the_rows_of_the_live_tables() {
    let mut operator = Operator::of(shared());
    let mut partner = operator.add_partner("100").await;
    let sale = operator.add_stocked_product(1).await;
    expect_success(&partner.order(&sale, 1).await, 201);
    let feed = read_feed_until("event: chart\ndata: {\"at\"").await;
    for expected in [
        "content-type: text/event-stream",
        "event: sample\ndata: <tr>",
        "event: actors.sums\ndata: <tr><th scope=\"row\"><a href=\"/actors/wallet\">",
        "event: actors.data\ndata: <tr>",
    ] {
        assert!(feed.contains(expected), "{expected}: {feed}");
    }
    let mut browser = Browser::of(shared());
    let overview = browser.read("/").await;
    assert!(
        overview.contains("sse-connect=\"/live\"")
            && overview.contains("data-source=\"/admin/v1/samples\"")
            && overview.contains("<tbody sse-swap=\"sample\"><tr>"),
        "{overview}"
    );
    let six_hours = browser.read("/?period=ten_seconds").await;
    assert!(
        six_hours.contains("data-source=\"/admin/v1/samples?period=ten_seconds\"")
            && six_hours.contains("href=\"/samples?period=ten_seconds\""),
        "{six_hours}"
    );
    assert!(browser.read("/samples").await.contains("<time"));
}

#[tokio::test]
async fn actor_has_a_page_with_its_last_minutes() {
    let mut operator = Operator::of(shared());
    let mut partner = operator.add_partner("100").await;
    let sale = operator.add_stocked_product(3).await;
    expect_success(&partner.order(&sale, 1).await, 201);
    let mut browser = Browser::of(shared());
    let wallets = browser.read("/actors/wallet").await;
    assert!(wallets.contains("Busiest actors"), "{wallets}");
    let key = format!("{}%2F2500", sale.product_id);
    for page in [
        format!("/actors/wallet/{}", partner.partner_id),
        format!("/actors/inventory/{key}"),
    ] {
        let shown = browser.read(&page).await;
        assert!(
            shown.contains("<dt>Handled</dt><dd>") && shown.contains("data-field=\"samples\""),
            "{shown}"
        );
        eventually("a sample of the actor", WAIT_TIMEOUT, async || {
            let actor = Operator::of(shared()).get(&format!("/admin/v1{page}")).await;
            let samples = actor["samples"].as_array().unwrap().len();
            (samples > 0 && !actor["handled_per_s"].is_null()).then_some(())
        })
        .await;
    }
    for unknown in ["/actors/wallet/x", "/actors/nothing/x", "/actors/inventory/a%2F1"] {
        let path = format!("/admin/v1{unknown}");
        let response = operator.call(Method::GET, &path, "application/json", "").await;
        vouchsafe_test_harness::expect_error(&response, 404, "ACTOR_NOT_FOUND");
    }
}

#[tokio::test]
async fn product_and_partner_pages_show_expiries_and_used_limits() {
    let mut operator = Operator::of(shared());
    let mut partner = operator.add_partner("100").await;
    let sale = operator.add_stocked_product(2).await;
    operator.restock(&sale, 1, "2031-05-07").await;
    operator.restock(&sale, 1, "2031-05-31").await;
    expect_success(&partner.order(&sale, 1).await, 201);
    let mut browser = Browser::of(shared());
    let expiries = browser
        .read(&format!("/expiries?product_id={}", sale.product_id))
        .await;
    assert!(
        expiries.contains(">2031-05</th>") && expiries.contains("<meter value="),
        "{expiries}"
    );
    let path = format!("/admin/v1/stock/expiries?product_id={}", sale.product_id);
    let listed = operator.get(&path).await;
    let count: i64 = listed["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|month| month["vouchers"].as_i64().unwrap())
        .sum();
    assert_eq!(count, 3, "one of four is sold: {listed}");
    let page = browser.read(&format!("/partners/{}", partner.partner_id)).await;
    assert!(page.contains("<h2>Rate limits</h2>"), "{page}");
    let path = format!("/admin/v1/partners/{}/limits", partner.partner_id);
    let limits = operator.get(&path).await;
    let orders = limits["data"]
        .as_array()
        .unwrap()
        .iter()
        .find(|limit| limit["class"] == "orders")
        .unwrap();
    assert_eq!(orders["used"], 1, "{limits}");
}
