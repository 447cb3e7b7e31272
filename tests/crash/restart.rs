//! Time from `kill -9` to the first order, with all stock claimed by the killed process.

use std::sync::Arc;
use std::time::{Duration, Instant};

use sqlx::{Connection as _, PgConnection};

use crate::fixtures::{HOT, order_body, seed_service};
use crate::load_session::{LoadSession, OrderRequest, Request};
use crate::operator::Operator;
use crate::processes::postmaster_pid;
use vouchsafe_test_harness::{Instance, WAIT_TIMEOUT, send_signal};

use crate::fixtures::{crash_instance, test_directory};
use crate::{lock_test_turn, run};

const TRIALS: u32 = 5;

/// One chunk: a process claims no more than it needs, and at least that.
const STOCK: u64 = 16;

#[test]
fn first_order_after_kill_uses_claimed_stock() {
    let _turn = lock_test_turn();
    run(async {
        let directory = test_directory();
        let mut program = crash_instance(&directory.path().join("data"), &[]);
        program.restart();
        let buyers = seed_service(&program, &[1_000_000]).await;
        Operator::of(&program).import_stock(&HOT, "all", STOCK).await;
        let session = Arc::new(LoadSession::new(buyers, &directory.path().join("history.jsonl")));
        place_first_order(&session, &program, "begin").await;
        for trial in 0..TRIALS {
            assert_eq!(
                unclaimed_chunks(&program).await,
                0,
                "the running process must have claimed all stock"
            );
            let with_server = trial % 2 == 1;
            if with_server {
                send_signal(postmaster_pid(program.data_dir()), rustix::process::Signal::KILL);
            }
            program.kill();
            let started = Instant::now();
            program.spawn();
            place_first_order(&session, &program, &format!("trial-{trial}")).await;
            let killed = if with_server {
                "service and server"
            } else {
                "service"
            };
            println!(
                "kill -9 of {killed}: first 201 {} ms after the start of the process",
                started.elapsed().as_millis()
            );
        }
        assert_eq!(program.stop(), Some(0), "{}", program.log_tail());
    });
}

/// Retries under one key until the order is placed.
async fn place_first_order(session: &LoadSession, program: &Instance, key: &str) {
    let mut client = session.buyers[0].client(&program.base_url());
    let order = OrderRequest {
        buyer: 0,
        key: key.to_owned(),
        body: order_body(&[(HOT, 1)]),
    };
    let deadline = Instant::now() + WAIT_TIMEOUT;
    loop {
        let outcome = session
            .send_recorded(0, &mut client, &Request::Order(order.clone()), None)
            .await;
        match outcome {
            Ok(response) if response.status.as_u16() == 201 => return,
            outcome => assert!(
                Instant::now() < deadline,
                "no order placed: {outcome:?}\n{}",
                program.log_tail()
            ),
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

async fn unclaimed_chunks(program: &Instance) -> i64 {
    let options = vouchsafe_private_postgres::find_running(program.data_dir()).unwrap();
    let mut database = PgConnection::connect_with(&options).await.unwrap();
    let count = sqlx::query_scalar("SELECT count(*) FROM chunks WHERE product_id = 'hot' AND node IS NULL");
    count.fetch_one(&mut database).await.unwrap()
}
