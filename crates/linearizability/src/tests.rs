//! Histories of a register and of a wallet, and a comparison with all orders.

use proptest::prelude::*;

use super::*;

/// A register, initially 0.
struct Register;

#[derive(Debug, Clone, Copy)]
enum Access {
    Write(u8),
    Read(u8),
}

impl Model for Register {
    type State = u8;
    type Operation = Access;

    fn initial(&self) -> u8 {
        0
    }

    fn apply(&self, state: &u8, access: &Access) -> Option<u8> {
        match *access {
            Access::Write(value) => Some(value),
            Access::Read(value) => (value == *state).then_some(value),
        }
    }
}

fn call(operation: Access, began: u64, ended: impl Into<Option<u64>>) -> Call<Access> {
    Call {
        operation,
        began,
        ended: ended.into(),
    }
}

#[test]
fn empty_history_has_an_order() {
    assert_eq!(check(&Register, &[]), Ok(Vec::new()));
}

#[test]
fn concurrent_read_may_come_before_or_after_a_write() {
    for value in [0, 1] {
        let history = [call(Access::Write(1), 1, 4), call(Access::Read(value), 2, 3)];
        assert!(check(&Register, &history).is_ok(), "{value}");
    }
}

#[test]
fn read_of_an_overwritten_value_after_the_write_is_rejected() {
    let history = [call(Access::Write(1), 1, 2), call(Access::Read(0), 3, 4)];
    assert_eq!(
        check(&Register, &history),
        Err(Violation {
            ordered: vec![0],
            next: vec![1]
        })
    );
}

#[test]
fn reads_in_different_orders_are_rejected() {
    // Each read alone has a place beside both writes; together they have none.
    let history = [
        call(Access::Write(1), 1, 10),
        call(Access::Write(2), 1, 10),
        call(Access::Read(1), 2, 3),
        call(Access::Read(2), 4, 5),
        call(Access::Read(1), 6, 7),
    ];
    assert!(check(&Register, &history).is_err());
    assert!(check(&Register, &history[..4]).is_ok());
}

#[test]
fn write_without_a_response_takes_effect_late_or_never() {
    let write = call(Access::Write(1), 1, None);
    let reads = |values: [u8; 2]| {
        [
            write.clone(),
            call(Access::Read(values[0]), 2, 3),
            call(Access::Read(values[1]), 4, 5),
        ]
    };
    for values in [[0, 0], [0, 1], [1, 1]] {
        assert!(check(&Register, &reads(values)).is_ok(), "{values:?}");
    }
    assert!(check(&Register, &reads([1, 0])).is_err());
    let before = [call(Access::Read(1), 1, 2), call(Access::Write(1), 3, None)];
    assert!(
        check(&Register, &before).is_err(),
        "it takes no effect before its request"
    );
}

/// Money of one wallet: spends what it has, and refuses what it has not.
struct Wallet(u32);

enum Spending {
    Accepted(u32),
    Refused(u32),
}

impl Model for Wallet {
    type State = u32;
    type Operation = Spending;

    fn initial(&self) -> u32 {
        self.0
    }

    fn apply(&self, balance: &u32, spending: &Spending) -> Option<u32> {
        match *spending {
            Spending::Accepted(amount) => balance.checked_sub(amount),
            Spending::Refused(amount) => (*balance < amount).then_some(*balance),
        }
    }
}

#[test]
fn wallet_that_spends_more_than_it_has_or_refuses_what_it_has_is_rejected() {
    let spend = |spendings: Vec<Spending>| {
        let history: Vec<_> = spendings
            .into_iter()
            .map(|operation| Call {
                operation,
                began: 1,
                ended: Some(2),
            })
            .collect();
        check(&Wallet(100), &history).is_ok()
    };
    assert!(spend(vec![Spending::Refused(60), Spending::Accepted(60)]));
    assert!(!spend(vec![Spending::Accepted(60), Spending::Accepted(60)]));
    assert!(!spend(vec![Spending::Refused(60), Spending::Accepted(30)]));
}

#[test]
fn long_history_of_few_concurrent_operations_is_checked() {
    let writes = (0..1_000_u64).flat_map(|round| {
        let (at, value) = (round * 10, u8::try_from(round % 7).unwrap());
        [
            call(Access::Write(value), at, at + 4),
            call(Access::Read(value), at + 1, at + 5),
            call(Access::Read(value), at + 6, at + 7),
        ]
    });
    let mut history: Vec<_> = writes.collect();
    assert_eq!(check(&Register, &history).map(|order| order.len()), Ok(3_000));
    history.push(call(Access::Read(9), 10_000, 10_001));
    assert!(check(&Register, &history).is_err());
}

/// Tries every order of the operations with a response, and of every set of the others.
fn has_order(history: &[Call<Access>], done: &mut Vec<usize>, state: u8) -> bool {
    let open = |position: &usize| !done.contains(position);
    let rest: Vec<usize> = (0..history.len()).filter(open).collect();
    if rest.iter().all(|position| history[*position].ended.is_none()) {
        return true;
    }
    rest.iter().any(|next| {
        let began = history[*next].began;
        let ended_before = |other: &usize| history[*other].ended.is_some_and(|ended| ended < began);
        if rest.iter().any(ended_before) {
            return false;
        }
        Register
            .apply(&state, &history[*next].operation)
            .is_some_and(|state| {
                done.push(*next);
                let found = has_order(history, done, state);
                done.pop();
                found
            })
    })
}

fn any_call() -> impl Strategy<Value = Call<Access>> {
    let access = (any::<bool>(), 0..3_u8).prop_map(|(is_write, value)| {
        if is_write {
            Access::Write(value)
        } else {
            Access::Read(value)
        }
    });
    (access, 0..12_u64, prop::option::weighted(0.8, 0..6_u64)).prop_map(|(operation, began, duration)| Call {
        operation,
        began,
        ended: duration.map(|duration| began + duration),
    })
}

proptest! {
    #[test]
    fn search_agrees_with_trying_every_order(history in prop::collection::vec(any_call(), 0..7)) {
        prop_assert_eq!(check(&Register, &history).is_ok(), has_order(&history, &mut Vec::new(), 0));
    }
}
