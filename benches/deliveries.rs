//! Benchmark of webhook delivery: rate and latency from commit (`created_at` of the event) to arrival, with
//! the whole program and a receiver on one machine.
//!
//! `cargo bench --profile dist --bench deliveries [-- ENDPOINTS…]` measures each number of endpoints at 5,000
//! and 2,500 deliveries/s, with all endpoints healthy and with a tenth of them hanging. `-- dead` measures
//! ten healthy endpoints, first with 100 other partners without endpoints, then with 1,000 hanging endpoints.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a bench reports to the terminal only"
)]

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

use vouchsafe_test_harness::{Instance, Operator, Partner, Sale};

/// Vouchers per order; an order has two more events than vouchers.
const QUANTITY: u32 = 10;

/// Maximum endpoints per partner.
const PER_PARTNER: usize = 10;

/// Parameters of `dead`: hanging endpoints, healthy endpoints, and deliveries per second. The partners of
/// hanging endpoints order, too.
const HANGING_ENDPOINTS: usize = 1_000;
const HEALTHY_ENDPOINTS: usize = 10;
const RATE_WITH_HANGING: usize = 250;

/// Behaviour of the endpoints that are not healthy.
#[derive(Debug, Clone, Copy)]
enum UnhealthyEndpoints {
    Hang,
    /// Their partners order but have no endpoints.
    Absent,
}

/// Duration of the orders of one run, and of a smoke test under `cargo test`.
const SPAN: Duration = Duration::from_secs(8);
const SHORT_SPAN: Duration = Duration::from_secs(1);

/// Time until hanging endpoints have failed six attempts of 5 s each; afterwards only their oldest delivery
/// is attempted.
const UNTIL_BACKOFF: Duration = Duration::from_secs(32);

/// Duration of the orders of `dead`.
const SPAN_WITH_HANGING: Duration = Duration::from_secs(75);

/// The first orders of the partners are spread over at least this time.
const WARM_UP: Duration = Duration::from_secs(2);

/// Deadline for deliveries after the last order.
const DELIVERY_TIMEOUT: Duration = Duration::from_secs(60);

/// Arrival and latency of each delivery.
type Arrivals = Arc<Mutex<Vec<(Instant, Duration)>>>;

fn start_receiver(arrivals: Arrivals, hangs: bool) -> SocketAddr {
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

#[allow(clippy::disallowed_methods)] // arrivals are compared with the database's clock, which is the clock of this machine
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
        let latency = Duration::try_from(now - created).unwrap_or_default();
        arrivals.lock().unwrap().push((at, latency));
        writer.write_all(b"HTTP/1.1 204 No Content\r\n\r\n")?;
    }
}

async fn register_endpoint(partner: &mut Partner, address: SocketAddr, n: usize) {
    let body = json!({ "url": format!("http://{address}/{n}") }).to_string();
    let response = partner.send_signed(Method::POST, "/webhooks", &body).await;
    assert_eq!(response.status, 201, "{:?}", response.body);
}

/// Places orders of one partner at a fixed interval, the first one after a delay. Returns their number.
async fn place_orders(
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
        let response = partner.order(sale, QUANTITY).await;
        assert_eq!(response.status, 201, "{:?}", response.body);
        orders += 1;
        next.await;
    }
    orders
}

async fn run(
    endpoints: usize,
    (hanging, unhealthy): (usize, UnhealthyEndpoints),
    rate: usize,
    span: Duration,
) {
    let service = Instance::start();
    let mut operator = Operator::of(&service);
    let sale = operator.add_stocked_product(0).await;
    let arrivals = Arrivals::default();
    let healthy_address = start_receiver(Arc::clone(&arrivals), false);
    let hanging_address = start_receiver(Arc::default(), true);
    let mut partners: Vec<Partner> = Vec::new();
    let mut healthy_counts = Vec::new();
    for first in (0..endpoints).step_by(PER_PARTNER) {
        let mut partner = operator.add_partner("100000000").await;
        let count = PER_PARTNER.min(endpoints - first);
        for n in first..first + count {
            match unhealthy {
                _ if n >= hanging => register_endpoint(&mut partner, healthy_address, n).await,
                UnhealthyEndpoints::Hang => register_endpoint(&mut partner, hanging_address, n).await,
                UnhealthyEndpoints::Absent => {}
            }
        }
        healthy_counts.push(count - hanging.saturating_sub(first).min(count));
        partners.push(partner);
    }
    // Deliveries per order: events × endpoints.
    let events = QUANTITY as usize + 2;
    let per_round: usize = healthy_counts.iter().map(|count| count * events).sum();
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
    // Staggered over the interval: simultaneous orders would arrive as one burst and delay the last delivery.
    // The first orders are spread over the warm-up, because a new endpoint is served first.
    let stagger = pause.max(WARM_UP).div_f64(partners.len() as f64);
    let ordering = (0..)
        .zip(&mut partners)
        .map(|(n, partner)| place_orders(partner, &sale, stagger * n, pause, span));
    let orders = join_all(ordering).await;
    let expected: usize = orders
        .iter()
        .zip(&healthy_counts)
        .map(|(orders, count)| orders * count * events)
        .sum();
    while arrivals.lock().unwrap().len() < expected && begin.elapsed() < span + pause + DELIVERY_TIMEOUT {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    report(endpoints, (hanging, unhealthy), rate, expected, begin, &arrivals);
}

fn report(
    endpoints: usize,
    (hanging, unhealthy): (usize, UnhealthyEndpoints),
    rate: usize,
    expected: usize,
    begin: Instant,
    arrivals: &Arrivals,
) {
    let arrivals = arrivals.lock().unwrap();
    let last = arrivals.iter().map(|(at, _)| *at).max().unwrap_or(begin);
    println!(
        "{endpoints:>5} endpoints, {hanging:>4} {unhealthy:?}, target {rate:>5}/s: {:>7} of {expected:>7} arrived, {:>6.0}/s, {}",
        arrivals.len(),
        arrivals.len() as f64 / (last - begin).as_secs_f64(),
        quantiles(&arrivals, begin..last + Duration::from_nanos(1)),
    );
    let backoff_start = begin + UNTIL_BACKOFF;
    if last > backoff_start + UNTIL_BACKOFF {
        println!(
            "      before the backoff of hanging endpoints: {}",
            quantiles(&arrivals, begin..backoff_start)
        );
        println!("      after: {}", quantiles(&arrivals, backoff_start..last));
    }
}

/// Quantiles of the latency of deliveries that arrived in an interval.
fn quantiles(arrivals: &[(Instant, Duration)], within: Range<Instant>) -> String {
    let within = arrivals.iter().filter(|(at, _)| within.contains(at));
    let mut latencies: Vec<Duration> = within.map(|(_, latency)| *latency).collect();
    latencies.sort_unstable();
    let at = |part: f64| {
        let index = (latencies.len() as f64 * part) as usize;
        let index = index.min(latencies.len().saturating_sub(1));
        latencies.get(index).copied().unwrap_or_default()
    };
    format!(
        "p50 {:>8.1?}, p99 {:>8.1?}, max {:>8.1?}",
        at(0.5),
        at(0.99),
        at(1.0)
    )
}

#[tokio::main]
async fn main() {
    if !std::env::args().any(|argument| argument == "--bench") {
        return run(10, (1, UnhealthyEndpoints::Hang), 500, SHORT_SPAN).await;
    }
    if std::env::args().any(|argument| argument == "dead") {
        for unhealthy in [UnhealthyEndpoints::Absent, UnhealthyEndpoints::Hang] {
            run(
                HEALTHY_ENDPOINTS + HANGING_ENDPOINTS,
                (HANGING_ENDPOINTS, unhealthy),
                RATE_WITH_HANGING,
                SPAN_WITH_HANGING,
            )
            .await;
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
                run(endpoints, (hanging, UnhealthyEndpoints::Hang), rate, SPAN).await;
            }
        }
    }
}
