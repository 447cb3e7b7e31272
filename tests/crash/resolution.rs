//! Resolution of unknown outcomes after the load has stopped: replays every unresolved key until its outcome
//! is definite, reads every acknowledged order back and fetches codes.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::task::JoinSet;
use vouchsafe_api_client::ApiResponse;
use vouchsafe_api_client::partner::PartnerClient;
use vouchsafe_test_harness::WAIT_TIMEOUT;

use crate::load_session::{AcknowledgedOrder, LoadSession, Request};

const CONCURRENCY: u32 = 8;

/// Process number of the first worker; load clients have smaller ones.
const FIRST_PROC: u32 = 1_000;

/// Outcomes of the replays of unresolved orders.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ReplayOutcomes {
    /// Executed, or rejected with a stored response, before the replay.
    pub(crate) committed: usize,
    /// First executed by the replay.
    pub(crate) not_written: usize,
}

pub(crate) async fn replay_unresolved(session: &Arc<LoadSession>, base_url: &str) -> ReplayOutcomes {
    let unresolved = session
        .take_unresolved()
        .into_iter()
        .map(Request::Order)
        .collect();
    let responses = send_all(session, base_url, unresolved).await;
    // A replay with a temporary error is recorded as unresolved too, although a later attempt resolved it.
    drop(session.take_unresolved());
    let committed = responses
        .iter()
        .filter(|(_, response)| response.header("idempotent-replayed") == Some("true"))
        .count();
    ReplayOutcomes {
        committed,
        not_written: responses.len() - committed,
    }
}

pub(crate) async fn read_back(session: &Arc<LoadSession>, base_url: &str, orders: &[AcknowledgedOrder]) {
    let requests = orders.iter().cloned().map(Request::GetOrder).collect();
    send_all(session, base_url, requests).await;
}

/// Fetches the codes of those orders that are delivered; returns how many.
pub(crate) async fn fetch_codes(
    session: &Arc<LoadSession>,
    base_url: &str,
    orders: impl Iterator<Item = AcknowledgedOrder>,
) -> usize {
    let requests = orders
        .filter(|order| order.delivered)
        .map(Request::GetCodes)
        .collect();
    let responses = send_all(session, base_url, requests).await;
    for (request, response) in &responses {
        assert!(response.status.is_success(), "{request:?}: {}", response.status);
    }
    responses.len()
}

/// Sends each request until its response is definite.
async fn send_all(
    session: &Arc<LoadSession>,
    base_url: &str,
    requests: Vec<Request>,
) -> Vec<(Request, ApiResponse)> {
    let queue = Arc::new(Mutex::new(requests));
    let mut workers = JoinSet::new();
    for proc in FIRST_PROC..FIRST_PROC + CONCURRENCY {
        let mut clients: Vec<_> = session
            .buyers
            .iter()
            .map(|buyer| buyer.client(base_url))
            .collect();
        let (session, queue) = (Arc::clone(session), Arc::clone(&queue));
        workers.spawn(async move {
            let mut responses = Vec::new();
            while let Some(request) = next_request(&queue) {
                let client = &mut clients[request.buyer()];
                let response = send_until_definite(&session, proc, client, &request).await;
                responses.push((request, response));
            }
            responses
        });
    }
    workers.join_all().await.concat()
}

fn next_request(queue: &Mutex<Vec<Request>>) -> Option<Request> {
    queue.lock().unwrap().pop()
}

pub(crate) async fn send_until_definite(
    session: &LoadSession,
    proc: u32,
    client: &mut PartnerClient,
    request: &Request,
) -> ApiResponse {
    let deadline = Instant::now() + WAIT_TIMEOUT;
    loop {
        let outcome = session.send_recorded(proc, client, request, None).await;
        match outcome {
            Ok(response) if !is_temporary(&response) => return response,
            _ => assert!(
                Instant::now() < deadline,
                "no definite response within {WAIT_TIMEOUT:?}: {outcome:?}"
            ),
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Returns whether the response leaves the outcome open, so that the same request must be repeated.
pub(crate) fn is_temporary(response: &ApiResponse) -> bool {
    let in_progress = response
        .error_code()
        .is_some_and(|code| code == "IDEMPOTENCY_IN_PROGRESS");
    response.status.is_server_error() || response.status.as_u16() == 429 || in_progress
}
