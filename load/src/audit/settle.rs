//! What became of the orders without a definite answer? Each is repeated under its key until there is one.

use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::future::join_all;

use super::AuditedPartner;
use crate::acknowledgements::{Acknowledgements, Unsettled};
use crate::client::ApiResponse;

/// How long unknown outcomes may take to become definite, all together: the service promises to settle what was
/// open within 30 s of a start, and this is twice that.
const SETTLE_WITHIN: Duration = Duration::from_secs(60);
/// Pause between two tries of one key while the service says "not now".
const SETTLE_PAUSE: Duration = Duration::from_millis(200);
/// Connections that settle: after an overload there are as many open orders as one alone would take minutes for.
const SETTLERS: usize = 32;

/// What one connection found out.
struct Settled {
    executed: Vec<(Unsettled, u16, Bytes)>,
    open: usize,
    refusal: Option<String>,
}

/// Repeats every order of unknown outcome under its key until the answer is definite.
pub(super) async fn settle(accounts: &[AuditedPartner], books: &mut Acknowledgements) -> Result<String, String> {
    let open = std::mem::take(&mut books.unsettled);
    let (count, deadline) = (open.len(), Instant::now() + SETTLE_WITHIN);
    let mut shares: Vec<Vec<Unsettled>> = Vec::new();
    shares.resize_with(SETTLERS.min(count), Vec::new);
    for (number, order) in open.into_iter().enumerate() {
        shares[number % SETTLERS].push(order);
    }
    let found = join_all(
        shares
            .into_iter()
            .map(|share| settle_share(accounts, share, deadline)),
    )
    .await;
    let (mut executed, mut left, mut refusal) = (0, 0, None);
    for settled in found {
        for (order, status, answer) in &settled.executed {
            books.record(order.partner, &order.key, &order.body, *status, answer);
        }
        executed += settled.executed.len();
        left += settled.open;
        refusal = refusal.or(settled.refusal);
    }
    match refusal {
        Some(refusal) => Err(format!("{left} of {count} still open, the first: {refusal}")),
        None => Ok(format!("{count} open, {executed} of them orders")),
    }
}

async fn settle_share(accounts: &[AuditedPartner], share: Vec<Unsettled>, deadline: Instant) -> Settled {
    let mut settled = Settled {
        executed: Vec::new(),
        open: share.len(),
        refusal: None,
    };
    for order in share {
        let mut client = accounts[order.partner].new_connection();
        loop {
            let refusal = match client.order(&order.key, order.body.clone()).await {
                Ok(answer) if answer.status.is_success() => {
                    let status = answer.status.as_u16();
                    settled.executed.push((order, status, answer.body));
                    break;
                }
                Ok(answer) if is_definite(&answer) => break,
                Ok(answer) => answer.status.to_string(),
                Err(failure) => failure.to_string(),
            };
            if Instant::now() >= deadline {
                settled.refusal = Some(refusal);
                return settled;
            }
            tokio::time::sleep(SETTLE_PAUSE).await;
        }
        settled.open -= 1;
    }
    settled
}

fn is_definite(answer: &ApiResponse) -> bool {
    match answer.status.as_u16() {
        409 => answer.error_code().as_deref() != Some("IDEMPOTENCY_IN_PROGRESS"),
        status => (400..500).contains(&status) && status != 429,
    }
}
