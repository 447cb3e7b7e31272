//! What chance decides in a walk, and how its answers are called.

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::flows::{Booked, NotBooked, NotPlaced, Unanswered};
use crate::testing::world::Heard;

/// The dice of one walk.
pub(super) struct Dice(StdRng);

impl Dice {
    pub(super) fn new(seed: u64) -> Self {
        Self(StdRng::seed_from_u64(seed))
    }

    /// A number below `sides`.
    pub(super) fn roll(&mut self, sides: u32) -> u32 {
        self.0.random_range(0..sides)
    }

    /// Whether so many in a hundred do.
    pub(super) fn percent(&mut self, chance: u32) -> bool {
        self.roll(100) < chance
    }

    /// One of these.
    pub(super) fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.0.random_range(0..of.len())]
    }

    pub(super) fn seed(&mut self) -> u64 {
        self.0.random()
    }
}

/// The kinds of answer, each of which some walk must hear.
pub const ANSWERS: [&str; 37] = [
    "delivered",
    "to be bought",
    "to be approved",
    "no funds",
    "no stock",
    "replayed",
    "unpriced",
    "key reused",
    "key busy",
    "overloaded",
    "unavailable",
    "outcome unknown",
    "poisoned",
    "gone",
    "booked",
    "booked before",
    "short of what is taken",
    "not booked now",
    "another booking",
    "a booker is gone",
    "cancelled",
    "revoked",
    "retrieved before",
    "too late to cancel",
    "nothing to cancel",
    "approved",
    "decided against",
    "not to be approved",
    "paid out",
    "paid out before",
    "payout decided",
    "payout over",
    "delivered to",
    "bought",
    "bought in part",
    "given up",
    "never delivered",
];

pub(super) fn name_of(heard: &Heard) -> &'static str {
    match heard {
        Heard::Gone => "gone",
        Heard::Replayed(_) => "replayed",
        Heard::Nothing(NotPlaced::Unpriced(_)) => "unpriced",
        Heard::Nothing(NotPlaced::Unanswered(reason)) => name_of_reason(reason),
        Heard::Fresh(answer) => match answer.status {
            201 => "delivered",
            402 => "no funds",
            409 => "no stock",
            _ if answer.body.starts_with(b"PENDINGVENDOR") => "to be bought",
            _ => "to be approved",
        },
    }
}

pub(super) fn name_of_reason(reason: &Unanswered) -> &'static str {
    match reason {
        Unanswered::KeyReused => "key reused",
        Unanswered::KeyBusy => "key busy",
        Unanswered::Overloaded => "overloaded",
        Unanswered::Unavailable => "unavailable",
        Unanswered::OutcomeUnknown => "outcome unknown",
        Unanswered::Poisoned => "poisoned",
    }
}

pub(super) fn name_of_booked(booked: &Result<Booked, NotBooked>) -> &'static str {
    match booked {
        Ok(booked) if booked.replayed => "booked before",
        Ok(_) => "booked",
        Err(NotBooked::Unanswered(Unanswered::KeyReused)) => "another booking",
        Err(NotBooked::Unanswered(_)) => "not booked now",
        Err(NotBooked::Short(_) | NotBooked::TooLarge) => "short of what is taken",
    }
}
