//! Prefixed ids that sort by creation time.
//!
//! Internally and in the database an id is 16 bytes (UUID version 7). On the wire it is a prefix and 32
//! lower-case hex digits, e.g. `ord_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f` (contract: "ids carry a prefix and sort
//! by time").
//!
//! The id of an order or a delivery attempt contains its time to the microsecond. A period of them is
//! therefore an exact range of the primary key, and no index on the time is needed. The debit of an order has
//! the order's 16 bytes as its id: the primary key of the ledger finds it, and rejects a second debit of the
//! order.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use time::OffsetDateTime;
use uuid::Uuid;

/// A text that is not an id of the expected kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected {prefix} followed by 32 lower-case hex digits")]
pub struct InvalidId {
    pub prefix: &'static str,
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[cfg_attr(feature = "sqlx", derive(sqlx::Type), sqlx(transparent))]
        pub struct $name(Uuid);

        impl $name {
            /// Prefix of the text form.
            pub const PREFIX: &'static str = $prefix;

            /// Length of the text form in bytes.
            pub const TEXT_LENGTH: usize = $prefix.len() + 32;

            #[must_use]
            pub const fn from_uuid(uuid: Uuid) -> Self {
                Self(uuid)
            }

            /// The UUID as written to the database.
            #[must_use]
            pub const fn as_uuid(self) -> Uuid {
                self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}{}", $prefix, self.0.as_simple())
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl FromStr for $name {
            type Err = InvalidId;

            fn from_str(text: &str) -> Result<Self, InvalidId> {
                parse_prefixed(text, $prefix).map(Self)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}

id!(/// A partner organisation.
    PartnerId, "ptn_");
id!(/// An API credential (key and secret) of a partner.
    CredentialId, "cred_");
id!(/// An order.
    OrderId, "ord_");
id!(/// An allocation of a voucher to an order. A voucher that is sold again gets a new id.
    VoucherId, "vch_");
id!(/// A ledger entry ("transaction" on the wire).
    TransactionId, "txn_");
id!(/// A payout.
    PayoutId, "po_");
id!(/// A drift: a difference between a vendor's records and ours.
    DriftId, "drf_");
id!(/// An event; the same id in the feed and on every delivery attempt.
    EventId, "evt_");
id!(/// A webhook endpoint of a partner.
    WebhookId, "wh_");
id!(/// An API token of an operator.
    OperatorTokenId, "otk_");
id!(/// A session of an operator in the console.
    OperatorSessionId, "ses_");
id!(/// A change that waits for a second operator.
    ChangeRequestId, "crq_");
id!(/// One action of an operator on many objects.
    BulkJobId, "blk_");
id!(/// A delivery that has a row in the store.
    DeliveryId, "dlv_");
id!(/// An attempt to deliver an event, in the log of attempts.
    AttemptId, "att_");

macro_rules! generated {
    ($($name:ident),+) => {
        $(impl $name {
            /// Generates an id for the current time.
            #[must_use]
            pub fn generate() -> Self {
                Self(Uuid::now_v7())
            }
        })+
    };
}

generated!(
    PartnerId,
    CredentialId,
    VoucherId,
    TransactionId,
    PayoutId,
    DriftId,
    EventId,
    WebhookId,
    OperatorTokenId,
    OperatorSessionId,
    ChangeRequestId,
    BulkJobId
);

impl BulkJobId {
    /// The trace id of all that the job does: the same digits.
    #[must_use]
    pub fn trace_id(self) -> String {
        self.0.as_simple().to_string()
    }
}

macro_rules! timed {
    ($($name:ident),+) => {
        $(impl $name {
            /// Generates an id for the time `at`, which is truncated to microseconds.
            #[must_use]
            pub fn generate_at(at: OffsetDateTime) -> Self {
                let mut random = [0; 8];
                random.copy_from_slice(&Uuid::new_v4().as_bytes()[8..]);
                Self(uuid_v7_at(at, random))
            }

            /// The lower bound of all ids of the time `at` or later, whether or not such an id exists.
            #[must_use]
            pub fn lower_bound_at(at: OffsetDateTime) -> Self {
                Self(uuid_v7_at(at, [0; 8]))
            }
        })+
    };
}

timed!(OrderId, AttemptId, ChangeRequestId);

impl OrderId {
    /// The time at which the order was accepted.
    #[must_use]
    pub fn accepted_at(self) -> OffsetDateTime {
        time_of(self.0)
    }
}

impl AttemptId {
    /// The time at which the attempt started.
    #[must_use]
    pub fn started_at(self) -> OffsetDateTime {
        time_of(self.0)
    }
}

/// Mask of the bits that offset a partner's event numbers within its event ids, so that events of different
/// partners in one commit get different ids. The bit left out keeps the sum from overflowing.
const NUMBER_BASE: u64 = (1 << 61) - 1;

impl EventId {
    /// The id of the partner's event `number`, committed at `at`.
    #[must_use]
    pub fn for_number(partner_id: PartnerId, number: i64, at: OffsetDateTime) -> Self {
        let low = number_base(partner_id) + number.unsigned_abs();
        Self(uuid_v7_at(at, low.to_be_bytes()))
    }

    /// The event number encoded in this id, if it can be an id of this partner. Either that event has this
    /// id, or no event has.
    #[must_use]
    pub fn number(self, partner_id: PartnerId) -> Option<i64> {
        let (_, low) = self.0.as_u64_pair();
        let number = (low & !(0b11 << 62)).checked_sub(number_base(partner_id))?;
        i64::try_from(number).ok()
    }
}

fn number_base(partner_id: PartnerId) -> u64 {
    partner_id.0.as_u64_pair().1 & NUMBER_BASE
}

impl TransactionId {
    /// The ledger entry that debits this order. There is exactly one.
    #[must_use]
    pub const fn debit_of(order_id: OrderId) -> Self {
        Self(order_id.0)
    }
}

/// Builds a UUID version 7 whose 12 bits below the millisecond hold the microseconds (RFC 9562, 6.2, method
/// 3), so that ids sort by time. Times before 1970 count as 1970.
fn uuid_v7_at(at: OffsetDateTime, random: [u8; 8]) -> Uuid {
    let micros = (at.unix_timestamp_nanos() / 1_000)
        .clamp(0, MAX_MICROS)
        .cast_unsigned();
    let (millis, below) = (micros / 1_000, micros % 1_000);
    let mut bits = (millis << 80) | (below << 64) | u128::from(u64::from_be_bytes(random));
    bits = (bits & !VERSION_AND_VARIANT) | VERSION_7;
    Uuid::from_u128(bits)
}

/// The time from which [`uuid_v7_at`] built this UUID, to the microsecond.
fn time_of(uuid: Uuid) -> OffsetDateTime {
    let (high, _) = uuid.as_u64_pair();
    let micros = i128::from(high >> 16) * 1_000 + i128::from(high & 0xfff);
    // The range of 48 bits of milliseconds is longer than that of the type.
    OffsetDateTime::from_unix_timestamp_nanos(micros * 1_000).unwrap_or(OffsetDateTime::UNIX_EPOCH)
}

/// The last microsecond that 48 bits of milliseconds can represent, in the year 10889.
const MAX_MICROS: i128 = (1 << 48) * 1_000 - 1;

/// The version and variant bits of a UUID.
const VERSION_AND_VARIANT: u128 = (0xf << 76) | (0b11 << 62);

/// The version and variant bits of UUID version 7.
const VERSION_7: u128 = (0x7 << 76) | (0b10 << 62);

/// Accepts one spelling only (lower-case hex, no hyphens), so that two texts never denote the same id.
fn parse_prefixed(text: &str, prefix: &'static str) -> Result<Uuid, InvalidId> {
    let error = InvalidId { prefix };
    let digits = text.strip_prefix(prefix).ok_or(error)?;
    let is_lower_hex = |b: &u8| b.is_ascii_digit() || (b'a'..=b'f').contains(b);
    if digits.len() != 32 || !digits.as_bytes().iter().all(is_lower_hex) {
        return Err(error);
    }
    Uuid::try_parse(digits).map_err(|_| error)
}

/// A stock row. Ids are dense, internal and never reused: a returned voucher gets a new row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[cfg_attr(feature = "sqlx", derive(sqlx::Type), sqlx(transparent))]
pub struct StockId(pub i64);

/// A chunk of stock: the unit in which a node claims vouchers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[cfg_attr(feature = "sqlx", derive(sqlx::Type), sqlx(transparent))]
pub struct ChunkId(pub i64);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use time::macros::datetime;

    use super::*;

    const MICROSECOND: time::Duration = time::Duration::MICROSECOND;

    #[test]
    fn id_round_trips_as_text() {
        let id = TransactionId::generate();
        assert_eq!(id.to_string().parse(), Ok(id));
        assert_eq!(id.to_string().len(), 36);
    }

    #[test]
    fn ids_sort_by_creation_time_as_bytes_and_as_text() {
        let ids: Vec<_> = (0..1_000).map(|_| TransactionId::generate()).collect();
        assert!(ids.is_sorted());
        assert!(
            ids.iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .is_sorted()
        );
    }

    #[test]
    fn order_id_lies_within_bounds_of_its_microsecond() {
        let created_at = datetime!(2026-11-20 12:00:00.123_456 UTC);
        for _ in 0..1_000 {
            let id = OrderId::generate_at(created_at);
            assert!(
                OrderId::lower_bound_at(created_at) <= id
                    && id < OrderId::lower_bound_at(created_at + MICROSECOND)
            );
            assert_eq!(
                (id.0.get_version_num(), id.0.get_variant()),
                (7, uuid::Variant::RFC4122)
            );
        }
        assert_ne!(OrderId::generate_at(created_at), OrderId::generate_at(created_at));
        assert_eq!(
            OrderId::lower_bound_at(created_at).to_string(),
            "ord_01a1f8d3ea7b71c88000000000000000"
        );
        let before_epoch = datetime!(-4000-01-01 0:00 UTC);
        assert_eq!(
            OrderId::lower_bound_at(before_epoch),
            OrderId::lower_bound_at(OffsetDateTime::UNIX_EPOCH)
        );
    }

    proptest! {
        #[test]
        fn text_parses_to_at_most_one_id(text in "(ord_|evt_|)[0-9a-fA-F-]{30,36}|\\PC{0,40}") {
            if let Ok(id) = text.parse::<OrderId>() {
                prop_assert_eq!(id.to_string(), text);
            }
        }

        #[test]
        fn order_id_round_trips_as_text(micros in 0..253_402_300_799_000_000_i128) {
            let at = OffsetDateTime::from_unix_timestamp_nanos(micros * 1_000).unwrap();
            let id = OrderId::generate_at(at);
            prop_assert_eq!(id.to_string().parse(), Ok(id));
            prop_assert_eq!(AttemptId::generate_at(at).started_at(), at);
            prop_assert!(id.to_string().parse::<TransactionId>().is_err());
        }

        #[test]
        fn order_ids_sort_by_creation_time(
            earlier in 0..253_402_300_799_000_000_i128,
            later in 0..253_402_300_799_000_000_i128,
        ) {
            let at = |micros| OffsetDateTime::from_unix_timestamp_nanos(micros * 1_000).unwrap();
            prop_assert_eq!(OrderId::generate_at(at(earlier)) < OrderId::lower_bound_at(at(later)), earlier < later);
        }
    }

    #[test]
    fn event_number_is_recovered_from_id_and_ids_sort_by_number() {
        let (partner, other) = (PartnerId::generate(), PartnerId::generate());
        let at = datetime!(2026-01-01 0:00 UTC);
        let id = |number| EventId::for_number(partner, number, at);
        assert_eq!(
            (id(1).number(partner), id(70_000).number(partner)),
            (Some(1), Some(70_000))
        );
        assert!(id(1) < id(2) && id(2) < EventId::for_number(partner, 1, at + MICROSECOND));
        assert_ne!(id(1), EventId::for_number(other, 1, at));
        assert_ne!(id(7).number(other), Some(7));
    }

    #[test]
    fn non_canonical_spellings_are_rejected() {
        let hex = "0198c1f2a3b47c5d8e9f0a1b2c3d4e5f";
        assert!(format!("ord_{hex}").parse::<OrderId>().is_ok());
        for text in [
            hex.to_owned(),
            format!("evt_{hex}"),
            format!("ord_{}", hex.to_uppercase()),
            format!("ord_{}", &hex[1..]),
            format!("ord_{hex}0"),
            "ord_0198c1f2-a3b4-7c5d-8e9f-0a1b2c3d4e5f".to_owned(),
            String::new(),
        ] {
            assert_eq!(
                text.parse::<OrderId>(),
                Err(InvalidId { prefix: "ord_" }),
                "{text}"
            );
        }
    }
}
