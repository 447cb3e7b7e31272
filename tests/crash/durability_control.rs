//! Negative control of the crash test: with asynchronous commits, which Postgres acknowledges before they are
//! durable, the checker must find a lost order.

use std::fs::OpenOptions;
use std::io::Write as _;

use crate::history::check::check;
use rustix::process::Signal;
use sqlx::Executor as _;
use vouchsafe_test_harness::send_signal;

use crate::client::OrderMix;
use crate::processes::{Fault, inject, postmaster_pid};
use crate::resolution::{read_back, replay_unresolved};
use crate::rounds::{CrashTest, SeedOnPanic, env_number};
use crate::{lock_test_turn, run};

/// A kill loses only what was acknowledged since the last flush, which is sometimes nothing.
const KILLS: u64 = 20;

/// By default the WAL writer flushes five times a second, and a slow machine acknowledges little in between.
const DELAYED_WAL_WRITER: &str = "wal_writer_delay = 10s\nwal_writer_flush_after = 2GB\n";

/// Makes every commit asynchronous: a synchronous commit of a purchase or an import would flush earlier
/// orders as well.
const ASYNC_COMMIT_TRIGGERS: &str = "
    CREATE FUNCTION cheat() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        PERFORM set_config('synchronous_commit', 'off', true);
        RETURN NULL;
    END
    $$;
    DO $$
    DECLARE
        v_table regclass;
    BEGIN
        FOR v_table IN
            SELECT oid FROM pg_class WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace
        LOOP
            EXECUTE format('CREATE TRIGGER cheat AFTER INSERT OR UPDATE OR DELETE ON %s
                            FOR EACH STATEMENT EXECUTE FUNCTION cheat()', v_table);
        END LOOP;
    END
    $$";

#[test]
fn asynchronous_commit_is_detected() {
    let _turn = lock_test_turn();
    let seed = env_number("VOUCHSAFE_CRASH_SEED").unwrap_or_else(|| getrandom::u64().unwrap());
    run(async {
        let mut crash = CrashTest::start(seed).await;
        crash
            .database()
            .await
            .execute(ASYNC_COMMIT_TRIGGERS)
            .await
            .unwrap();
        crash.delay_wal_writer();
        for round in 1..=KILLS {
            let _seed = SeedOnPanic { seed, round };
            if let Some(loss) = crash.find_loss(round).await {
                println!("detected after kill {round}: {loss}");
                return;
            }
        }
        panic!("no loss detected after {KILLS} kills with asynchronous commits");
    });
}

impl CrashTest {
    /// Postgres reads the file again at SIGHUP and at each start.
    fn delay_wal_writer(&self) {
        let data_dir = self.program.data_dir();
        let settings = data_dir.join("postgres/data/postgresql.auto.conf");
        let mut settings = OpenOptions::new().append(true).open(settings).unwrap();
        settings.write_all(DELAYED_WAL_WRITER.as_bytes()).unwrap();
        send_signal(postmaster_pid(data_dir), Signal::HUP);
    }

    /// Places orders, kills service and server, reads every acknowledged order back and returns the first
    /// violation.
    async fn find_loss(&mut self, round: u64) -> Option<String> {
        self.restock(round).await;
        let load = self.start_clients(OrderMix::OneStockedProduct);
        let mut database = self.database().await;
        // Within the stock: an order takes at most three of the two hundred vouchers or more of its product.
        self.wait_for_orders(20, 100).await;
        let server = postmaster_pid(self.program.data_dir());
        let kind = Fault::ServiceAndPostmaster;
        inject(kind, &mut self.program, &mut database, &mut self.rng).await;
        self.session.set_running(false);
        self.recover(kind, server).await;
        load.join_all().await;
        replay_unresolved(&self.session, &self.program.base_url()).await;
        let acknowledged = self.session.acknowledged_orders();
        read_back(&self.session, &self.program.base_url(), &acknowledged).await;
        check(&self.session.history())
            .err()
            .map(|violation| violation.to_string())
    }
}
