//! How soon after kill -9 is an order placed again, when the dead process had claimed all stock?

use std::sync::Arc;
use std::time::{Duration, Instant};

use sqlx::{Connection as _, PgConnection};
use vouchsafe::postgres;

use crate::load_session::{LoadSession, Request, OrderRequest};
use crate::operator::Operator;
use crate::processes::{postmaster_pid, send_signal};
use crate::program::{Program, test_directory};
use crate::fixtures::{HOT, seed_service, order_body};
use crate::{lock_test_turn, run};

/// What is promised is 3 s, on a machine that does nothing else; here the build's other tests may run.
const FIRST_ORDER_TIMEOUT: Duration = Duration::from_secs(20);

/// How often it is measured, for each thing that is killed.
const TRIALS: u32 = 5;

/// How many vouchers the dead process had claimed.
const STOCK: u64 = 4_000;

#[test]
fn the_first_order_after_a_kill_finds_stock_that_was_claimed() {
    let _turn = lock_test_turn();
    run(async {
        let directory = test_directory();
        let mut program = Program::new(&directory.path().join("data"), &[]);
        program.start().await;
        let buyers = seed_service(&program, &[1_000_000]).await;
        Operator::of(&program).import_stock(&HOT, "all", STOCK).await;
        let front = Arc::new(LoadSession::new(buyers, &directory.path().join("history.jsonl")));
        place_first_order(&front, &program, "begin").await;
        for trial in 0..TRIALS {
            assert_eq!(
                unclaimed_chunks(&program).await,
                0,
                "all stock is claimed by the process that is killed now"
            );
            let with_server = trial % 2 == 1;
            if with_server {
                send_signal(postmaster_pid(program.data_dir()), rustix::process::Signal::KILL);
            }
            program.kill();
            let began = Instant::now();
            program.spawn();
            place_first_order(&front, &program, &format!("trial-{trial}")).await;
            let took = began.elapsed();
            let killed = if with_server {
                "service and server"
            } else {
                "service"
            };
            println!(
                "kill -9 of {killed}: first 201 {} ms after the start of the process",
                took.as_millis()
            );
            assert!(took < FIRST_ORDER_TIMEOUT, "{took:?}");
        }
        assert!(program.stop(), "{}", program.log_tail());
    });
}

/// Tries until an order is placed, each time under the same key.
async fn place_first_order(front: &LoadSession, program: &Program, key: &str) {
    let mut client = front.buyers[0].client(&program.base_url());
    let wish = OrderRequest {
        buyer: 0,
        key: key.to_owned(),
        body: order_body(&[(HOT, 1)]),
    };
    let deadline = Instant::now() + 2 * FIRST_ORDER_TIMEOUT;
    loop {
        let came = front
            .send_recorded(0, &mut client, &Request::Order(wish.clone()), None)
            .await;
        match came {
            Ok(answer) if answer.status.as_u16() == 201 => return,
            came => assert!(
                Instant::now() < deadline,
                "no order is placed: {came:?}\n{}",
                program.log_tail()
            ),
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// Chunks of the SKU that nobody owns.
async fn unclaimed_chunks(program: &Program) -> i64 {
    let options = postgres::find_running(program.data_dir()).unwrap();
    let mut database = PgConnection::connect_with(&options).await.unwrap();
    let count = sqlx::query_scalar("SELECT count(*) FROM chunks WHERE product_id = 'hot' AND node IS NULL");
    count.fetch_one(&mut database).await.unwrap()
}
