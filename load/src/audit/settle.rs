//! Settlement of unknown outcomes: repeats each order under its key until the response is definite.

use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::future::join_all;
use vouchsafe_api_client::ApiResponse;

use super::AuditedPartner;
use crate::tally::acknowledgements::{Acknowledgements, Unsettled};

/// Total deadline: the service promises to resolve open orders within 30 s of a start; this is twice that.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(60);
/// Delay between attempts for one key.
const RETRY_DELAY: Duration = Duration::from_millis(200);
/// Concurrent connections: after an overload a single one would need minutes.
const CONNECTIONS: usize = 32;

/// Result of one connection.
struct SettleResult {
    executed: Vec<(Unsettled, u16, Bytes)>,
    open: usize,
    refusal: Option<String>,
}

/// Repeats every unsettled order under its key until the response is definite.
pub(super) async fn settle(
    accounts: &[AuditedPartner],
    acknowledgements: &mut Acknowledgements,
) -> Result<String, String> {
    let open = std::mem::take(&mut acknowledgements.unsettled);
    let (count, deadline) = (open.len(), Instant::now() + SETTLE_TIMEOUT);
    let mut shares: Vec<Vec<Unsettled>> = Vec::new();
    shares.resize_with(CONNECTIONS.min(count), Vec::new);
    for (number, order) in open.into_iter().enumerate() {
        shares[number % CONNECTIONS].push(order);
    }
    let results = join_all(
        shares
            .into_iter()
            .map(|share| settle_share(accounts, share, deadline)),
    )
    .await;
    let (mut executed, mut still_open, mut refusal) = (0, 0, None);
    for result in results {
        for (order, status, response) in &result.executed {
            acknowledgements.record(order.partner, &order.key, &order.body, *status, response);
        }
        executed += result.executed.len();
        still_open += result.open;
        refusal = refusal.or(result.refusal);
    }
    match refusal {
        Some(refusal) => Err(format!("{still_open} of {count} still open, first: {refusal}")),
        None => Ok(format!("{count} open, {executed} of them executed")),
    }
}

async fn settle_share(accounts: &[AuditedPartner], share: Vec<Unsettled>, deadline: Instant) -> SettleResult {
    let mut result = SettleResult {
        executed: Vec::new(),
        open: share.len(),
        refusal: None,
    };
    for order in share {
        let mut client = accounts[order.partner].new_connection();
        loop {
            let refusal = match client.order(&order.key, order.body.clone()).await {
                Ok(response) if response.status.is_success() => {
                    let status = response.status.as_u16();
                    result.executed.push((order, status, response.body));
                    break;
                }
                Ok(response) if is_definite(&response) => break,
                Ok(response) => response.status.to_string(),
                Err(failure) => failure.to_string(),
            };
            if Instant::now() >= deadline {
                result.refusal = Some(refusal);
                return result;
            }
            tokio::time::sleep(RETRY_DELAY).await;
        }
        result.open -= 1;
    }
    result
}

fn is_definite(response: &ApiResponse) -> bool {
    match response.status.as_u16() {
        409 => response.error_code().as_deref() != Some("IDEMPOTENCY_IN_PROGRESS"),
        status => (400..500).contains(&status) && status != 429,
    }
}
