//! The kinds of refused requests, and which of them are compared.

use vouchsafe_test_harness::timing_verdict::Expectation;

/// Differences that count, in nanoseconds.
pub(super) struct Relevant {
    /// Between a key that exists and one that does not. A lookup that finds a key may take some nanoseconds
    /// more or less: a key has 128 random bits, too many to find one by trying.
    pub(super) lookup_ns: u32,
    /// Between the first and the last byte of a signature.
    pub(super) comparison_ns: u32,
}

/// A comparison that ends at the first wrong byte differs by more over 32 bytes. Lookups that differ by less
/// cannot be told apart over a network.
pub(super) const RELEVANT_IN_PROCESS: Relevant = Relevant {
    lookup_ns: 50,
    comparison_ns: 3,
};

/// Sockets and scheduling make smaller differences invisible.
pub(super) const RELEVANT_OVER_LOOPBACK: Relevant = Relevant {
    lookup_ns: 2_500,
    comparison_ns: 2_500,
};

/// Why a request is refused.
#[derive(Clone, Copy)]
pub(super) enum RequestDefect {
    UnknownKey,
    WrongSecret,
    /// The signature is wrong in its first byte.
    FirstByte,
    /// The signature is wrong in its last byte.
    LastByte,
    /// Same as [`Self::UnknownKey`].
    UnknownKeyAgain,
    /// Same as [`Self::UnknownKey`], and a delay.
    UnknownKeyDelayed,
}

pub(super) const REQUEST_DEFECTS: [RequestDefect; 6] = [
    RequestDefect::UnknownKey,
    RequestDefect::WrongSecret,
    RequestDefect::FirstByte,
    RequestDefect::LastByte,
    RequestDefect::UnknownKeyAgain,
    RequestDefect::UnknownKeyDelayed,
];

/// What is expected of a pair.
#[derive(Clone, Copy)]
pub(super) enum Expected {
    SameLookup,
    SameComparison,
    Equal,
    Different,
}

impl Expected {
    pub(super) const fn expectation(self, relevant: &Relevant) -> Expectation {
        match self {
            Self::SameLookup => Expectation::Tested {
                relevant_ns: relevant.lookup_ns,
            },
            Self::SameComparison => Expectation::Tested {
                relevant_ns: relevant.comparison_ns,
            },
            Self::Equal => Expectation::Equal,
            Self::Different => Expectation::Different,
        }
    }
}

/// The compared pairs: name, what is expected, kinds.
pub(super) const PAIRS: [(&str, Expected, RequestDefect, RequestDefect); 4] = [
    (
        "unknown key / wrong secret",
        Expected::SameLookup,
        RequestDefect::UnknownKey,
        RequestDefect::WrongSecret,
    ),
    (
        "signature wrong in first / last byte",
        Expected::SameComparison,
        RequestDefect::FirstByte,
        RequestDefect::LastByte,
    ),
    (
        "control: equal requests",
        Expected::Equal,
        RequestDefect::UnknownKey,
        RequestDefect::UnknownKeyAgain,
    ),
    (
        "control: added delay",
        Expected::Different,
        RequestDefect::UnknownKey,
        RequestDefect::UnknownKeyDelayed,
    ),
];
