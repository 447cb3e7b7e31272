//! How fast do webhooks arrive? The whole program and a receiver on one machine: orders are placed, and each event is timed
//! from its commit, as its envelope says, to its arrival.
//!
//! `cargo bench --bench deliveries [-- ENDPOINTS…]`; for each number of endpoints all take what they get, and then a tenth
//! of them hangs. A second figure is half the rate, where nothing queues. `-- dead` is ten endpoints beside a
//! hundred partners without any, and then beside the thousand of these, which hang.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a bench has nobody to tell but the terminal, and its figures are to be looked at"
)]

#[path = "../tests/it/support/mod.rs"]
#[allow(dead_code, unused_imports, reason = "shared with the tests")]
mod support;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use hyper::Method;
use serde_json::json;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::support::{Instance, Operator, Partner, Sale};

/// Vouchers of an order, which has two events more.
const QUANTITY: u32 = 10;

/// Endpoints of a partner, at most.
const PER_PARTNER: usize = 10;

/// Beside so many endpoints that hang, do these get what they get without them? At so many deliveries a second, since the
/// partners of those that hang order, too.
const DEAD: usize = 1_000;
const HEALTHY: usize = 10;
const RATE_BESIDE_DEAD: usize = 250;

/// What the endpoints do that do not take what they get.
#[derive(Debug, Clone, Copy)]
enum Others {
    Hang,
    /// Their partners order, and have none.
    Absent,
}

/// How long orders are placed in one run; and where the bench is only tried, as `cargo test` does.
const SPAN: Duration = Duration::from_secs(8);
const SHORT_SPAN: Duration = Duration::from_secs(1);

/// When endpoints that hang have failed five times and one thing more, 5 s each, and only their oldest delivery is tried.
const UNTIL_LEFT_ALONE: Duration = Duration::from_secs(32);

/// How long orders are placed beside endpoints that hang.
const SPAN_BESIDE_DEAD: Duration = Duration::from_secs(75);

/// Over how long at least the partners begin.
const WARM_UP: Duration = Duration::from_secs(2);

/// How long deliveries may still arrive after it.
const PATIENCE: Duration = Duration::from_secs(60);

/// When deliveries arrived, and how long after their commits.
type Arrivals = Arc<Mutex<Vec<(Instant, Duration)>>>;

fn receiver(arrivals: Arrivals, hangs: bool) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let arrivals = Arc::clone(&arrivals);
            std::thread::spawn(move || drop(serve(stream, &arrivals, hangs)));
        }
    });
    address
}

#[allow(clippy::disallowed_methods)] // an arrival is compared with the database's clock, which is this machine's
fn serve(stream: TcpStream, arrivals: &Arrivals, hangs: bool) -> std::io::Result<()> {
    let mut writer = stream.try_clone()?;
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    loop {
        let mut length = 0;
        loop {
            line.clear();
            if reader.read_line(&mut line)? == 0 {
                return Ok(());
            }
            if let Some(text) = line.strip_prefix("content-length: ") {
                length = text.trim().parse().unwrap();
            }
            if line == "\r\n" {
                break;
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;
        let (at, now) = (Instant::now(), OffsetDateTime::now_utc());
        if hangs {
            std::thread::sleep(Duration::from_secs(10));
            return Ok(());
        }
        let text = String::from_utf8(body).unwrap();
        let created = text.split(r#""created_at":""#).nth(1).unwrap();
        let created = OffsetDateTime::parse(&created[..27], &Rfc3339).unwrap();
        let after = Duration::try_from(now - created).unwrap_or_default();
        arrivals.lock().unwrap().push((at, after));
        writer.write_all(b"HTTP/1.1 204 No Content\r\n\r\n")?;
    }
}

async fn listen(partner: &mut Partner, address: SocketAddr, n: usize) {
    let body = json!({ "url": format!("http://{address}/{n}") }).to_string();
    let answer = partner.send_signed(Method::POST, "/webhooks", &body).await;
    assert_eq!(answer.status, 201, "{:?}", answer.body);
}

/// Orders of one partner, one after the other, with this pause between their beginnings; the first one after a while.
async fn order_on(
    partner: &mut Partner,
    sale: &Sale,
    first_after: Duration,
    pause: Duration,
    span: Duration,
) -> usize {
    tokio::time::sleep(first_after).await;
    let (begin, mut orders) = (Instant::now(), 0);
    while begin.elapsed() < span {
        let next = tokio::time::sleep(pause);
        let answer = partner.order(sale, QUANTITY).await;
        assert_eq!(answer.status, 201, "{:?}", answer.body);
        orders += 1;
        next.await;
    }
    orders
}

async fn run(endpoints: usize, (hanging, others): (usize, Others), rate: usize, span: Duration) {
    let service = Instance::start();
    let mut operator = Operator::of(&service);
    let sale = operator.add_stocked_product(0).await;
    let arrivals = Arrivals::default();
    let takes = receiver(Arc::clone(&arrivals), false);
    let hangs = receiver(Arc::default(), true);
    let mut partners: Vec<Partner> = Vec::new();
    let mut listening = Vec::new();
    for first in (0..endpoints).step_by(PER_PARTNER) {
        let mut partner = operator.add_partner("100000000").await;
        let own = PER_PARTNER.min(endpoints - first);
        for n in first..first + own {
            match others {
                _ if n >= hanging => listen(&mut partner, takes, n).await,
                Others::Hang => listen(&mut partner, hangs, n).await,
                Others::Absent => {}
            }
        }
        listening.push(own - hanging.saturating_sub(first).min(own));
        partners.push(partner);
    }
    // Deliveries of one order: its events times the endpoints that take them.
    let events = QUANTITY as usize + 2;
    let per_round: usize = listening.iter().map(|own| own * events).sum();
    let pause = Duration::from_secs_f64(per_round as f64 / rate as f64);
    let rounds = (span.as_secs_f64() / pause.as_secs_f64()).ceil() as usize + 2;
    operator
        .restock(
            &sale,
            (rounds + 1) * partners.len() * QUANTITY as usize,
            "2035-01-01",
        )
        .await;
    let begin = Instant::now();
    // Spread over the pause: all at once, each round would be one heap, and its last delivery late by all of it. And the
    // first ones over a while, since each endpoint that is heard of for the first time is taken first.
    let stagger = pause.max(WARM_UP).div_f64(partners.len() as f64);
    let ordering = (0..)
        .zip(&mut partners)
        .map(|(n, partner)| order_on(partner, &sale, stagger * n, pause, span));
    let orders = join_all(ordering).await;
    let expected: usize = orders
        .iter()
        .zip(&listening)
        .map(|(orders, own)| orders * own * events)
        .sum();
    while arrivals.lock().unwrap().len() < expected && begin.elapsed() < span + pause + PATIENCE {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    report(endpoints, (hanging, others), rate, expected, begin, &arrivals);
}

fn report(
    endpoints: usize,
    (hanging, others): (usize, Others),
    rate: usize,
    expected: usize,
    begin: Instant,
    arrivals: &Arrivals,
) {
    let arrivals = arrivals.lock().unwrap();
    let last = arrivals.iter().map(|(at, _)| *at).max().unwrap_or(begin);
    println!(
        "{endpoints:>5} endpoints, {hanging:>4} {others:?}, asked {rate:>5}/s: {:>7} of {expected:>7} arrived, {:>6.0}/s, {}",
        arrivals.len(),
        arrivals.len() as f64 / (last - begin).as_secs_f64(),
        quantiles(&arrivals, begin..last + Duration::from_nanos(1)),
    );
    let left_alone = begin + UNTIL_LEFT_ALONE;
    if last > left_alone + UNTIL_LEFT_ALONE {
        println!(
            "      before the first were left alone: {}",
            quantiles(&arrivals, begin..left_alone)
        );
        println!("      after: {}", quantiles(&arrivals, left_alone..last));
    }
}

/// Of what arrived in this time.
fn quantiles(arrivals: &[(Instant, Duration)], within: Range<Instant>) -> String {
    let within = arrivals.iter().filter(|(at, _)| within.contains(at));
    let mut after: Vec<Duration> = within.map(|(_, after)| *after).collect();
    after.sort_unstable();
    let at = |part: f64| {
        let index = (after.len() as f64 * part) as usize;
        let index = index.min(after.len().saturating_sub(1));
        after.get(index).copied().unwrap_or_default()
    };
    format!(
        "p50 {:>8.1?}, p99 {:>8.1?}, most {:>8.1?}",
        at(0.5),
        at(0.99),
        at(1.0)
    )
}

#[tokio::main]
async fn main() {
    if !std::env::args().any(|argument| argument == "--bench") {
        return run(10, (1, Others::Hang), 500, SHORT_SPAN).await;
    }
    if std::env::args().any(|argument| argument == "dead") {
        for others in [Others::Absent, Others::Hang] {
            run(HEALTHY + DEAD, (DEAD, others), RATE_BESIDE_DEAD, SPAN_BESIDE_DEAD).await;
        }
        return;
    }
    let numbers: Vec<usize> = std::env::args().filter_map(|text| text.parse().ok()).collect();
    let numbers = if numbers.is_empty() {
        vec![1, 100, 1_000]
    } else {
        numbers
    };
    for endpoints in numbers {
        for rate in [5_000, 2_500] {
            for hanging in [0, endpoints / 10] {
                run(endpoints, (hanging, Others::Hang), rate, SPAN).await;
            }
        }
    }
}
