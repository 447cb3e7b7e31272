//! Who goes together with whom, who goes alone, and how long each waits? Without a database.

use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::join_all;
use sqlx::postgres::PgConnectOptions;
use tokio::runtime::Handle;

use super::*;

/// Fails whoever is with it, and itself alone, too.
const FAILS: u32 = 10_001;

/// Ends the errand in the middle.
const PANICS: u32 = 10_002;

/// Has to go on alone.
const PUT_OFF: u32 = 10_003;

/// Is answered with an error of its own.
const WRONG: u32 = 10_004;

/// What is added to what went on alone.
const ALONE: u32 = 1_000_000;

/// Gives back what it is asked, and notes when it was asked what. Needs no database.
#[derive(Debug, Clone)]
struct Echo {
    takes: Duration,
    noted: Arc<Mutex<Vec<Vec<u32>>>>,
}

impl Echo {
    fn taking(takes: Duration) -> Self {
        Self {
            takes,
            noted: Arc::default(),
        }
    }

    fn noted(&self) -> Vec<Vec<u32>> {
        self.noted.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn line(&self, kind: Kind) -> Line<Self> {
        let store = PgStore::open(PgConnectOptions::new(), Handle::current());
        Line::of(&store, self, kind)
    }
}

impl BatchOp for Echo {
    type Request = u32;
    type Answer = u32;

    const MOST: usize = 32;

    async fn together(self, _: PgPool, requests: Vec<u32>) -> Result<Outcomes<u32>, sqlx::Error> {
        self.noted
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(requests.clone());
        sleep(self.takes).await;
        assert!(!requests.contains(&PANICS), "as the test wants it");
        if requests.contains(&FAILS) {
            return Err(sqlx::Error::RowNotFound);
        }
        let answer = |request| match request {
            PUT_OFF => None,
            WRONG => Some(Err(sqlx::Error::RowNotFound)),
            request => Some(Ok(request)),
        };
        Ok(requests.into_iter().map(answer).collect())
    }

    async fn alone(self, _: PgPool, request: u32) -> Result<u32, sqlx::Error> {
        match request {
            FAILS => Err(sqlx::Error::RowNotFound),
            request => Ok(request + ALONE),
        }
    }
}

const A_WHILE: Duration = Duration::from_millis(2);

#[test]
fn a_desk_rests_longer_the_more_often_it_is_slow_and_has_company() {
    let ms = Duration::from_millis;
    let long = LONG;
    let short = LONG / 2;
    for (before, took, waiting, then) in [
        (0, long, 0, 0),
        (0, short, 1, 0),
        (0, long, 1, 1),
        (1, long, 1, 2),
        (2, long, Echo::MOST - 1, 4),
        (4, long, 1, 4),
        (4, long, Echo::MOST, 0),
        (4, long, 0, 2),
        (4, short, 1, 2),
        (2, short, 1, 1),
        (1, short, 1, 0),
        (1, long, 0, 0),
    ] {
        let rest = rest_after(ms(before), took, waiting, Echo::MOST);
        assert_eq!(rest, ms(then), "{before} ms, then {took:?}, {waiting} wait");
    }
}

#[tokio::test(start_paused = true)]
async fn who_asks_one_after_the_other_waits_for_nobody() {
    let echo = Echo::taking(A_WHILE);
    let line = echo.line(Kind::LookUp);
    let since = Instant::now();
    for request in 0..100 {
        assert_eq!(line.ask(request).await, Ok(request));
    }
    assert_eq!(since.elapsed(), 100 * A_WHILE);
}

#[tokio::test(start_paused = true)]
async fn who_asks_while_others_do_is_answered_with_them() {
    let echo = Echo::taking(A_WHILE);
    let line = echo.line(Kind::LookUp);
    let asks = (0..1_000).map(|request| {
        let line = line.clone();
        async move {
            sleep(Duration::from_millis(request.into())).await;
            let since = Instant::now();
            assert_eq!(line.ask(request).await, Ok(request));
            since.elapsed()
        }
    });
    let took = join_all(asks).await;
    assert!(took.into_iter().all(|took| took <= 2 * A_WHILE + LONGEST_REST));
    let noted = echo.noted();
    assert!(
        noted.len() <= 1_000 / 5,
        "one a millisecond, {} times",
        noted.len()
    );
    assert!(
        noted.concat().into_iter().eq(0..1_000),
        "in their order, and once each"
    );
}

#[tokio::test(start_paused = true)]
async fn a_line_that_is_long_enough_is_served_at_once() {
    let echo = Echo::taking(A_WHILE);
    let line = echo.line(Kind::LookUp);
    let many = u32::try_from(4 * Echo::MOST).unwrap();
    let since = Instant::now();
    join_all((0..many).map(|request| line.ask(request))).await;
    assert_eq!(echo.noted().len(), 4);
    assert!(since.elapsed() <= 4 * A_WHILE + LONGEST_REST);
}

#[tokio::test(start_paused = true)]
async fn who_waits_longer_than_for_a_connection_is_told_so_and_not_served() {
    let echo = Echo::taking(ACQUIRE_TIMEOUT * 2);
    let line = echo.line(Kind::Write);
    let asks = (1..=3).map(|request| {
        let line = line.clone();
        async move {
            sleep(A_WHILE * request).await;
            line.ask(request).await
        }
    });
    let answers = join_all(asks).await;
    let late = Err(unavailable(&sqlx::Error::PoolTimedOut));
    assert_eq!(answers, [Ok(1), Ok(2), late]);
    assert_eq!(echo.noted(), [[1], [2]]);
}

#[tokio::test(start_paused = true)]
async fn who_is_held_up_goes_on_alone_and_those_behind_go_on() {
    let echo = Echo::taking(LOOK_UP_DEADLINE * 10);
    let line = echo.line(Kind::LookUp);
    let since = Instant::now();
    let behind = async {
        sleep(A_WHILE).await;
        line.ask(2).await
    };
    let (first, behind) = tokio::join!(line.ask(1), behind);
    assert_eq!((first, behind), (Ok(1 + ALONE), Ok(2 + ALONE)));
    assert!(since.elapsed() <= 2 * LOOK_UP_DEADLINE + LONGEST_REST);
}

#[tokio::test(start_paused = true)]
async fn a_second_desk_takes_what_comes_while_the_first_is_busy() {
    let echo = Echo::taking(A_WHILE);
    let line = echo.line(Kind::Write);
    let since = Instant::now();
    let later = async {
        sleep(A_WHILE / 2).await;
        line.ask(2).await
    };
    let (first, later) = tokio::join!(line.ask(1), later);
    assert_eq!((first, later), (Ok(1), Ok(2)));
    assert_eq!(since.elapsed(), A_WHILE + A_WHILE / 2);
}

#[tokio::test(start_paused = true)]
async fn nobody_fails_by_those_it_went_with_and_the_desk_goes_on() {
    let echo = Echo::taking(A_WHILE);
    let line = echo.line(Kind::LookUp);
    let failed = || Err(unavailable(&sqlx::Error::RowNotFound));
    for (asked, answered) in [
        ([1, 2, FAILS], [Ok(1 + ALONE), Ok(2 + ALONE), failed()]),
        ([3, PANICS, 4], [Ok(3 + ALONE), Ok(PANICS + ALONE), Ok(4 + ALONE)]),
        ([5, PUT_OFF, WRONG], [Ok(5), Ok(PUT_OFF + ALONE), failed()]),
    ] {
        let answers = join_all(asked.map(|request| line.ask(request))).await;
        assert_eq!(answers, answered, "{asked:?}");
    }
    assert_eq!(echo.noted().len(), 3);
}
