//! What follows when the load has stopped and everything is up again? Every open key is replayed until its outcome is
//! definite, every acknowledged order is read back, codes are fetched.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::task::JoinSet;
use vouchsafe_load::client::ApiResponse;
use vouchsafe_load::partner::PartnerClient;

use crate::load_session::{LoadSession, Request, AcknowledgedOrder};

/// How long "not now" is accepted: what was open is settled within 30 s of a start (contract §11).
const RESOLUTION_TIMEOUT: Duration = Duration::from_secs(30);

/// How many questions are asked at a time.
const CONCURRENCY: u32 = 8;

/// Number of the first of those who ask them; clients of the load have smaller ones.
const FIRST_PROC: u32 = 1_000;

/// What became of orders whose outcome was unknown.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ReplayOutcomes {
    /// They had been executed, or refused for good.
    pub(crate) committed: usize,
    /// They had not: the replay was the first to be answered.
    pub(crate) not_written: usize,
}

/// Replays everything that is open.
pub(crate) async fn replay_unresolved(front: &Arc<LoadSession>, base_url: &str) -> ReplayOutcomes {
    let open = front.take_unresolved().into_iter().map(Request::Order).collect();
    let answers = send_all(front, base_url, open).await;
    // A replay that was told "not now" is open, too; but it went on until it was told more.
    drop(front.take_unresolved());
    let committed = answers
        .iter()
        .filter(|(_, answer)| answer.header("idempotent-replayed") == Some("true"))
        .count();
    ReplayOutcomes {
        committed,
        not_written: answers.len() - committed,
    }
}

/// Reads these orders back.
pub(crate) async fn read_back(front: &Arc<LoadSession>, base_url: &str, orders: &[AcknowledgedOrder]) {
    let questions = orders.iter().cloned().map(Request::GetOrder).collect();
    send_all(front, base_url, questions).await;
}

/// Fetches the codes of these orders, as far as they have any.
pub(crate) async fn fetch_codes(
    front: &Arc<LoadSession>,
    base_url: &str,
    orders: impl Iterator<Item = AcknowledgedOrder>,
) -> usize {
    let questions = orders
        .filter(|taken| taken.delivered)
        .map(Request::GetCodes)
        .collect();
    let answers = send_all(front, base_url, questions).await;
    for (question, answer) in &answers {
        assert!(answer.status.is_success(), "{question:?}: {}", answer.status);
    }
    answers.len()
}

/// Asks each until the answer is definite, several at a time.
async fn send_all(front: &Arc<LoadSession>, base_url: &str, questions: Vec<Request>) -> Vec<(Request, ApiResponse)> {
    let queue = Arc::new(Mutex::new(questions));
    let mut workers = JoinSet::new();
    for proc in FIRST_PROC..FIRST_PROC + CONCURRENCY {
        let mut clients: Vec<_> = front.buyers.iter().map(|buyer| buyer.client(base_url)).collect();
        let (front, queue) = (Arc::clone(front), Arc::clone(&queue));
        workers.spawn(async move {
            let mut answers = Vec::new();
            while let Some(question) = next_request(&queue) {
                let client = &mut clients[question.buyer()];
                let answer = send_until_definite(&front, proc, client, &question).await;
                answers.push((question, answer));
            }
            answers
        });
    }
    workers.join_all().await.concat()
}

fn next_request(queue: &Mutex<Vec<Request>>) -> Option<Request> {
    queue.lock().unwrap().pop()
}

/// Asks until the answer is more than "not now".
pub(crate) async fn send_until_definite(
    front: &LoadSession,
    proc: u32,
    client: &mut PartnerClient,
    question: &Request,
) -> ApiResponse {
    let deadline = Instant::now() + RESOLUTION_TIMEOUT;
    loop {
        let came = front.send_recorded(proc, client, question, None).await;
        match came {
            Ok(answer) if !is_temporary(&answer) => return answer,
            _ => assert!(
                Instant::now() < deadline,
                "nothing definite within {RESOLUTION_TIMEOUT:?}: {came:?}"
            ),
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Whether nothing is settled by it: the same may be asked again.
pub(crate) fn is_temporary(answer: &ApiResponse) -> bool {
    let in_progress = answer
        .error_code()
        .is_some_and(|code| code == "IDEMPOTENCY_IN_PROGRESS");
    answer.status.is_server_error() || answer.status.as_u16() == 429 || in_progress
}
