//! Request kinds, and requests as drawn before they are sent.

use std::fmt;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestKind {
    /// A new order with a new key.
    Order,
    /// The whole life of an order: placed, its codes and itself read once, and all its events received by a
    /// webhook endpoint.
    Life,
    /// Repetition of an earlier order under its key, drawn uniformly from all sent orders.
    Duplicate,
    /// Read of a completed order.
    Read,
    /// Read of the codes of a completed order.
    Codes,
    Wallets,
    /// Next page of the partner's event feed.
    Feed,
}

impl fmt::Display for RequestKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Order => "order",
            Self::Life => "life",
            Self::Duplicate => "duplicate",
            Self::Read => "read",
            Self::Codes => "codes",
            Self::Wallets => "wallets",
            Self::Feed => "feed",
        })
    }
}

/// A drawn request, without data that is only known when it is sent.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum RequestSpec {
    /// A new order; `partner` and `form` are indexes. With `is_life` the rest of its life follows.
    Order {
        partner: usize,
        form: usize,
        body: Bytes,
        is_life: bool,
    },
    /// A request for an earlier order at relative position `at` (0 to 1).
    PastOrder { kind: RequestKind, at: f64 },
    /// A read of data of a partner, by index.
    PartnerRead { kind: RequestKind, partner: usize },
}
