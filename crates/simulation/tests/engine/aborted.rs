//! Cancellation safety: flows aborted at each poll and repeated. Nothing leaks, and each key executes once.

mod changes;

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use vouchsafe_simulation::walk::{Node, OrderReply, OrderRequest, Simulation};
use vouchsafe_simulation::{Fault, build};

use crate::fixture::{ALICE, SECOND, assert_settled, gift, order_request, setup, top_up_command};
use crate::simulation_tests;

/// Polls a future `polls_left` times and then drops it; `None` if it was not finished.
struct AbortedFuture<F> {
    future: Option<Pin<Box<F>>>,
    polls_left: usize,
}

impl<F: Future> Future for AbortedFuture<F> {
    type Output = Option<F::Output>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let polled = self
            .future
            .as_mut()
            .expect("not polled after completion")
            .as_mut()
            .poll(context);
        self.polls_left -= 1;
        match polled {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending if self.polls_left == 0 => {
                self.future = None;
                Poll::Ready(None)
            }
            Poll::Pending => Poll::Pending,
        }
    }
}

/// Runs `flow` on the node for at most this many polls.
async fn abort_after<F: Future + 'static>(node: &Node, polls_left: usize, flow: F) -> Option<F::Output> {
    let future = Some(Box::pin(flow));
    node.spawn(AbortedFuture { future, polls_left }).await.unwrap()
}

/// Aborts the order after 1, 2, 3 … polls, each in a new simulation, and repeats it. Returns the number of
/// polls it takes.
async fn abort_at_each_poll(request: &OrderRequest, stock: usize, faults: &[Fault], expected: &str) -> usize {
    for polls in 1.. {
        let (sim, node) = setup().await;
        if stock > 0 {
            sim.import(&gift(), &vec![1; stock]);
            sim.import(&build::sku("gift", 2_500), &vec![1; stock]);
        }
        faults.iter().for_each(|fault| sim.db.fail_commit("one", *fault));
        let command = request.command(sim.catalogue());
        let engine = std::sync::Arc::clone(&node.engine);
        let flow = async move {
            let plain = &vouchsafe_simulation::walk::PlainTextResponses;
            OrderReply::from(vouchsafe_actors::flows::place_order(&engine, command, plain).await)
        };
        let reply = abort_after(&node, polls, flow).await;
        assert_settled(&sim, &node).await;
        let again = node.place_order(request).await;
        let text = again
            .response()
            .map(|response| String::from_utf8_lossy(&response.body).into_owned());
        assert!(
            text.unwrap().starts_with(expected),
            "after {polls}: {}",
            again.describe()
        );
        assert_executed_once(&sim, &node, request, polls).await;
        if let Some(reply) = reply {
            assert_eq!(reply.expect_new(), again.expect_replay(), "after {polls}");
            return polls;
        }
    }
    unreachable!("a flow finishes")
}

async fn assert_executed_once(sim: &Simulation, node: &Node, request: &OrderRequest, polls: usize) {
    assert_settled(sim, node).await;
    let accepted = sim
        .db
        .stored_key(request.key_hash())
        .unwrap()
        .known
        .response
        .status
        < 300;
    assert_eq!(sim.db.orders().len(), usize::from(accepted), "after {polls}");
    assert!(node.has_current_balance(ALICE).await, "after {polls}");
    assert!(
        node.place_order(request).await.expect_replay().len() > 1,
        "after {polls}"
    );
}

simulation_tests! {
    async fn order_aborted_at_each_poll_executes_once() {
        let two_skus = OrderRequest::new(ALICE, "k", &[("gift", "10.00", 2), ("gift", "25.00", 1)]);
        let table: &[(&str, OrderRequest, usize, &[Fault], &str)] = &[
            ("hit", two_skus.clone(), 5, &[], "DELIVERED"),
            ("hit, all stock", two_skus.clone(), 2, &[], "DELIVERED"),
            ("hit, slow", two_skus.clone(), 5, &[Fault::Slow(SECOND)], "DELIVERED"),
            ("hit, response lost", two_skus.clone(), 5, &[Fault::ResponseLost], "DELIVERED"),
            ("hit, never sent", two_skus.clone(), 5, &[Fault::NeverSent], "DELIVERED"),
            ("hit, busy", two_skus.clone(), 5, &[Fault::Busy], "DELIVERED"),
            ("miss", order_request(ALICE, "k", "bought", 1), 0, &[], "PENDINGVENDOR"),
            ("approval", order_request(ALICE, "k", "checked", 1), 0, &[], "PENDINGAPPROVAL"),
            ("funds", order_request(ALICE, "k", "gift", 11), 20, &[], "INSUFFICIENT_FUNDS"),
            ("stock", two_skus, 1, &[], "INSUFFICIENT_INVENTORY"),
        ];
        for (name, request, stock, faults, expected) in table {
            let steps = abort_at_each_poll(request, *stock, faults, expected).await;
            println!("{name}: {steps} steps");
            assert!(steps >= 3, "{name}: only {steps} steps");
        }
    }

    async fn order_with_stale_stock_aborted_at_each_poll_executes_once() {
        for polls in 1.. {
            let (sim, node) = setup().await;
            let shelved = sim.import(&gift(), &[1; 4]);
            node.place_order(&order_request(build::partner(2), "warm", "gift", 1)).await.expect_new();
            assert!(sim.db.void(shelved[1].stock_id).await);
            let request = order_request(ALICE, "k", "gift", 2);
            let task = node.start_order(&request);
            let ended = abort_after(&node, polls, task).await.is_some();
            assert_settled(&sim, &node).await;
            assert!(node.place_order(&request).await.response().is_some());
            assert_settled(&sim, &node).await;
            assert_eq!((sim.db.orders().len(), sim.balance(ALICE)), (2, 8_000), "after {polls}");
            if ended {
                break;
            }
        }
    }

    async fn top_up_aborted_at_each_poll_is_posted_once() {
        for (amount, fault) in [(500, None), (-500, None), (500, Some(Fault::ResponseLost)), (-500, Some(Fault::Delayed))] {
            for polls in 1.. {
                let (sim, node) = setup().await;
                fault.into_iter().for_each(|fault| sim.db.fail_commit("one", fault));
                let command = top_up_command(ALICE, "b", amount);
                let engine = std::sync::Arc::clone(&node.engine);
                let flow = {
                    let command = command.clone();
                    async move { vouchsafe_actors::flows::top_up(&engine, command).await }
                };
                let ended = abort_after(&node, polls, flow).await.is_some();
                assert_settled(&sim, &node).await;
                node.top_up(command).await.unwrap();
                assert_settled(&sim, &node).await;
                assert_eq!(sim.balance(ALICE), 10_000 + amount, "after {polls}");
                assert!(node.has_current_balance(ALICE).await);
                if ended {
                    break;
                }
            }
        }
    }

    async fn concurrent_disconnects_leak_nothing() {
        let (sim, node) = setup().await;
        sim.import(&gift(), &[1; 8]);
        for wave in 0..6_u64 {
            sim.db.fail_commit("one", Fault::Slow(SECOND / 10));
            let key = |call| format!("{wave}/{}", call / 2);
            let calls: Vec<_> = (0..16).map(|call| node.start_order(&order_request(ALICE, &key(call), "gift", 1))).collect();
            tokio::time::sleep(Duration::from_millis(wave * 20)).await;
            calls.iter().step_by(2).for_each(tokio::task::JoinHandle::abort);
            tokio::task::yield_now().await;
            calls.iter().for_each(tokio::task::JoinHandle::abort);
        }
        assert_settled(&sim, &node).await;
        assert!(node.has_current_balance(ALICE).await);
    }
}
