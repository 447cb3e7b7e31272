//! Every flow, aborted at each of its steps and repeated: nothing leaks, and its key executes once.

mod changes;

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use vouchsafe_actors::testing::world::{Ask, Heard, Node, World};
use vouchsafe_actors::testing::{Fault, build};

use crate::in_a_world;
use crate::shop::{ALICE, SECOND, all_is_settled, booking, gift, shop, wants};

/// Polls a future so many times, and then drops it. Says whether it had come to its end.
struct Aborted<F> {
    inner: Option<Pin<Box<F>>>,
    polls_left: usize,
}

impl<F: Future> Future for Aborted<F> {
    type Output = Option<F::Output>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let polled = self
            .inner
            .as_mut()
            .expect("it is not polled again")
            .as_mut()
            .poll(context);
        self.polls_left -= 1;
        match polled {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending if self.polls_left == 0 => {
                self.inner = None;
                Poll::Ready(None)
            }
            Poll::Pending => Poll::Pending,
        }
    }
}

/// Runs `flow` on the node, for so many polls.
async fn abort_after<F: Future + 'static>(node: &Node, polls_left: usize, flow: F) -> Option<F::Output> {
    let inner = Some(Box::pin(flow));
    node.spawn(Aborted { inner, polls_left }).await.unwrap()
}

/// Aborts the order after 1, 2, 3 … polls, each in a shop of its own, and repeats it. Returns how many steps it has.
async fn aborted_at_each_step(ask: &Ask, stock: usize, faults: &[Fault], expected: &str) -> usize {
    for polls in 1.. {
        let (world, node) = shop().await;
        if stock > 0 {
            world.import(&gift(), &vec![1; stock]);
            world.import(&build::sku("gift", 2_500), &vec![1; stock]);
        }
        faults
            .iter()
            .for_each(|fault| world.db.fail_commit("one", *fault));
        let command = ask.command(world.catalogue());
        let engine = std::sync::Arc::clone(&node.engine);
        let flow = async move {
            let plain = &vouchsafe_actors::testing::world::Plain;
            Heard::from(vouchsafe_actors::flows::place_order(&engine, command, plain).await)
        };
        let heard = abort_after(&node, polls, flow).await;
        all_is_settled(&world, &node).await;
        let again = node.places(ask).await;
        let text = again
            .answer()
            .map(|answer| String::from_utf8_lossy(&answer.body).into_owned());
        assert!(
            text.unwrap().starts_with(expected),
            "after {polls}: {}",
            again.in_words()
        );
        executed_once(&world, &node, ask, polls).await;
        if let Some(heard) = heard {
            assert_eq!(heard.fresh(), again.replayed(), "after {polls}");
            return polls;
        }
    }
    unreachable!("a flow has an end")
}

async fn executed_once(world: &World, node: &Node, ask: &Ask, polls: usize) {
    all_is_settled(world, node).await;
    let accepted = world.db.kept(ask.key_hash()).unwrap().known.answer.status < 300;
    assert_eq!(world.db.orders().len(), usize::from(accepted), "after {polls}");
    assert!(node.knows_balance(ALICE).await, "after {polls}");
    assert!(node.places(ask).await.replayed().len() > 1, "after {polls}");
}

in_a_world! {
    async fn an_order_aborted_at_each_step_executes_once() {
        let two_skus = Ask::new(ALICE, "k", &[("gift", "10.00", 2), ("gift", "25.00", 1)]);
        let table: &[(&str, Ask, usize, &[Fault], &str)] = &[
            ("hit", two_skus.clone(), 5, &[], "DELIVERED"),
            ("hit, all there is", two_skus.clone(), 2, &[], "DELIVERED"),
            ("hit, slowly", two_skus.clone(), 5, &[Fault::Slow(SECOND)], "DELIVERED"),
            ("hit, answer lost", two_skus.clone(), 5, &[Fault::AnswerLost], "DELIVERED"),
            ("hit, never sent", two_skus.clone(), 5, &[Fault::NeverSent], "DELIVERED"),
            ("hit, busy", two_skus.clone(), 5, &[Fault::Busy], "DELIVERED"),
            ("miss", wants(ALICE, "k", "bought", 1), 0, &[], "PENDINGVENDOR"),
            ("approval", wants(ALICE, "k", "checked", 1), 0, &[], "PENDINGAPPROVAL"),
            ("funds", wants(ALICE, "k", "gift", 11), 20, &[], "INSUFFICIENT_FUNDS"),
            ("stock", two_skus, 1, &[], "INSUFFICIENT_INVENTORY"),
        ];
        for (name, ask, stock, faults, expected) in table {
            let steps = aborted_at_each_step(ask, *stock, faults, expected).await;
            println!("{name}: {steps} steps");
            assert!(steps >= 3, "{name}: only {steps} steps");
        }
    }

    async fn an_order_whose_world_moved_on_aborted_at_each_step_executes_once() {
        for polls in 1.. {
            let (world, node) = shop().await;
            let shelved = world.import(&gift(), &[1; 4]);
            node.places(&wants(build::partner(2), "warm", "gift", 1)).await.fresh();
            assert!(world.db.void(shelved[1].stock_id).await);
            let ask = wants(ALICE, "k", "gift", 2);
            let task = node.begins(&ask);
            let ended = abort_after(&node, polls, task).await.is_some();
            all_is_settled(&world, &node).await;
            assert!(node.places(&ask).await.answer().is_some());
            all_is_settled(&world, &node).await;
            assert_eq!((world.db.orders().len(), world.balance(ALICE)), (2, 8_000), "after {polls}");
            if ended {
                break;
            }
        }
    }

    async fn a_booking_aborted_at_each_step_is_booked_once() {
        for (amount, fault) in [(500, None), (-500, None), (500, Some(Fault::AnswerLost)), (-500, Some(Fault::Late))] {
            for polls in 1.. {
                let (world, node) = shop().await;
                fault.into_iter().for_each(|fault| world.db.fail_commit("one", fault));
                let command = booking(ALICE, "b", amount);
                let engine = std::sync::Arc::clone(&node.engine);
                let flow = {
                    let command = command.clone();
                    async move { vouchsafe_actors::flows::top_up(&engine, command).await }
                };
                let ended = abort_after(&node, polls, flow).await.is_some();
                all_is_settled(&world, &node).await;
                node.books(command).await.unwrap();
                all_is_settled(&world, &node).await;
                assert_eq!(world.balance(ALICE), 10_000 + amount, "after {polls}");
                assert!(node.knows_balance(ALICE).await);
                if ended {
                    break;
                }
            }
        }
    }

    async fn many_that_hang_up_at_any_moment_leave_nothing_behind() {
        let (world, node) = shop().await;
        world.import(&gift(), &[1; 8]);
        for wave in 0..6_u64 {
            world.db.fail_commit("one", Fault::Slow(SECOND / 10));
            let key = |call| format!("{wave}/{}", call / 2);
            let calls: Vec<_> = (0..16).map(|call| node.begins(&wants(ALICE, &key(call), "gift", 1))).collect();
            tokio::time::sleep(Duration::from_millis(wave * 20)).await;
            calls.iter().step_by(2).for_each(tokio::task::JoinHandle::abort);
            tokio::task::yield_now().await;
            calls.iter().for_each(tokio::task::JoinHandle::abort);
        }
        all_is_settled(&world, &node).await;
        assert!(node.knows_balance(ALICE).await);
    }
}
