//! How things are named: ids with a prefix that sort by the time they were made.
//!
//! Inside and in the database an id is its 16 bytes (UUID version 7); on the wire it is the prefix and 32 lower-case
//! hex digits, e.g. `ord_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f` (contract: "ids carry a prefix and sort by time").
//!
//! Rule: an order's id is made of its `created_at`, to the microsecond. So the orders of a span of time are a range of
//! the primary key, exactly, and no index on the time is needed. Its debit has the same 16 bytes for an id, so that the
//! ledger's primary key finds it too, and holds a second debit of one order back.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use time::OffsetDateTime;
use uuid::Uuid;

/// Why a text is no id of the kind that was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected {prefix} followed by 32 lower-case hex digits")]
pub struct InvalidId {
    /// The prefix that this kind of id carries.
    pub prefix: &'static str,
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(Uuid);

        impl $name {
            /// What the text form begins with.
            pub const PREFIX: &'static str = $prefix;

            /// How long the text form is, in bytes.
            pub const TEXT_LENGTH: usize = $prefix.len() + 32;

            /// The id with these bytes, as read from the database.
            #[must_use]
            pub const fn from_uuid(uuid: Uuid) -> Self {
                Self(uuid)
            }

            /// The bytes, as written to the database.
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
id!(/// One key and secret of a partner.
    CredentialId, "cred_");
id!(/// An order.
    OrderId, "ord_");
id!(/// An allocation: a voucher as one order holds it. A voucher that is sold again has a new one.
    VoucherId, "vch_");
id!(/// A ledger entry, "transaction" on the wire.
    TransactionId, "txn_");
id!(/// A payout.
    PayoutId, "po_");
id!(/// A place where a vendor's books and ours differ.
    DriftId, "drf_");
id!(/// An event: the same in the feed and on every attempt to deliver it.
    EventId, "evt_");
id!(/// An endpoint that a partner has registered for its events.
    WebhookId, "wh_");
id!(/// A delivery that has a row of its own, as operators name it.
    DeliveryId, "dlv_");

macro_rules! generated {
    ($($name:ident),+) => {
        $(impl $name {
            /// A new id of this moment.
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
    WebhookId
);

impl OrderId {
    /// A new id of an order that is accepted at this moment, which is read to the microsecond.
    #[must_use]
    pub fn at(created_at: OffsetDateTime) -> Self {
        let mut chance = [0; 8];
        chance.copy_from_slice(&Uuid::new_v4().as_bytes()[8..]);
        Self(timed(created_at, chance))
    }

    /// What no order of this moment or later comes before, and every earlier one does; whether or not there is such an
    /// order.
    #[must_use]
    pub fn first_at(moment: OffsetDateTime) -> Self {
        Self(timed(moment, [0; 8]))
    }
}

/// Where a partner's numbers begin among the low bits of its events' ids: partners whose events are of one commit share no
/// id. The bit that is left out keeps numbers from running over.
const NUMBER_BASE: u64 = (1 << 61) - 1;

impl EventId {
    /// The id of the partner's event with this number, committed at this moment.
    #[must_use]
    pub fn numbered(partner_id: PartnerId, number: i64, at: OffsetDateTime) -> Self {
        let low = number_base(partner_id) + number.unsigned_abs();
        Self(timed(at, low.to_be_bytes()))
    }

    /// The number of the partner's event with this id, if it is one: the event of that number has this id, or none has.
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
    /// The entry that pays this order. There is one.
    #[must_use]
    pub const fn debit_of(order_id: OrderId) -> Self {
        Self(order_id.0)
    }
}

/// UUID version 7 with its 12 bits below the millisecond for the microseconds (RFC 9562, 6.2, method 3), so that ids
/// sort as their times do. What is before 1970 counts as 1970.
fn timed(at: OffsetDateTime, chance: [u8; 8]) -> Uuid {
    let micros = (at.unix_timestamp_nanos() / 1_000)
        .clamp(0, MAX_MICROS)
        .cast_unsigned();
    let (millis, below) = (micros / 1_000, micros % 1_000);
    let mut bits = (millis << 80) | (below << 64) | u128::from(u64::from_be_bytes(chance));
    bits = (bits & !VERSION_AND_VARIANT) | VERSION_7;
    Uuid::from_u128(bits)
}

/// The last microsecond that 48 bits of milliseconds hold, in the year 10889.
const MAX_MICROS: i128 = (1 << 48) * 1_000 - 1;

/// Where a UUID says what kind it is.
const VERSION_AND_VARIANT: u128 = (0xf << 76) | (0b11 << 62);

/// What it says there.
const VERSION_7: u128 = (0x7 << 76) | (0b10 << 62);

/// Exactly one spelling an id: lower-case hex, no hyphens, so that two texts never mean the same id.
fn parse_prefixed(text: &str, prefix: &'static str) -> Result<Uuid, InvalidId> {
    let error = InvalidId { prefix };
    let digits = text.strip_prefix(prefix).ok_or(error)?;
    let plain = |b: &u8| b.is_ascii_digit() || (b'a'..=b'f').contains(b);
    if digits.len() != 32 || !digits.as_bytes().iter().all(plain) {
        return Err(error);
    }
    Uuid::try_parse(digits).map_err(|_| error)
}

/// The row of a voucher in stock. Dense, never seen outside, never used twice: a voucher that comes back gets a new one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StockId(pub i64);

/// A chunk of stock: the unit in which a node claims vouchers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ChunkId(pub i64);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use time::macros::datetime;

    use super::*;

    const MICROSECOND: time::Duration = time::Duration::MICROSECOND;

    #[test]
    fn an_id_reads_back_as_it_was_written() {
        let id = TransactionId::generate();
        assert_eq!(id.to_string().parse(), Ok(id));
        assert_eq!(id.to_string().len(), 36);
    }

    #[test]
    fn ids_sort_by_the_time_they_were_made_in_text_too() {
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
    fn an_order_of_a_moment_lies_between_its_bounds() {
        let moment = datetime!(2026-11-20 12:00:00.123_456 UTC);
        for _ in 0..1_000 {
            let id = OrderId::at(moment);
            assert!(OrderId::first_at(moment) <= id && id < OrderId::first_at(moment + MICROSECOND));
            assert_eq!(
                (id.0.get_version_num(), id.0.get_variant()),
                (7, uuid::Variant::RFC4122)
            );
        }
        assert_ne!(OrderId::at(moment), OrderId::at(moment));
        assert_eq!(
            OrderId::first_at(moment).to_string(),
            "ord_01a1f8d3ea7b71c88000000000000000"
        );
        let ages_ago = datetime!(-4000-01-01 0:00 UTC);
        assert_eq!(
            OrderId::first_at(ages_ago),
            OrderId::first_at(OffsetDateTime::UNIX_EPOCH)
        );
    }

    proptest! {
        #[test]
        fn any_text_is_one_id_or_none(text in "(ord_|evt_|)[0-9a-fA-F-]{30,36}|\\PC{0,40}") {
            if let Ok(id) = text.parse::<OrderId>() {
                prop_assert_eq!(id.to_string(), text);
            }
        }

        #[test]
        fn an_order_reads_back_from_its_path(micros in 0..253_402_300_799_000_000_i128) {
            let at = OffsetDateTime::from_unix_timestamp_nanos(micros * 1_000).unwrap();
            let id = OrderId::at(at);
            prop_assert_eq!(id.to_string().parse(), Ok(id));
            prop_assert!(id.to_string().parse::<TransactionId>().is_err());
        }

        #[test]
        fn orders_sort_as_their_times_do(
            earlier in 0..253_402_300_799_000_000_i128,
            later in 0..253_402_300_799_000_000_i128,
        ) {
            let at = |micros| OffsetDateTime::from_unix_timestamp_nanos(micros * 1_000).unwrap();
            prop_assert_eq!(OrderId::at(at(earlier)) < OrderId::first_at(at(later)), earlier < later);
        }
    }

    #[test]
    fn an_event_is_found_by_its_id_and_sorts_by_its_number() {
        let (partner, other) = (PartnerId::generate(), PartnerId::generate());
        let at = datetime!(2026-01-01 0:00 UTC);
        let id = |number| EventId::numbered(partner, number, at);
        assert_eq!(
            (id(1).number(partner), id(70_000).number(partner)),
            (Some(1), Some(70_000))
        );
        assert!(id(1) < id(2) && id(2) < EventId::numbered(partner, 1, at + MICROSECOND));
        assert_ne!(id(1), EventId::numbered(other, 1, at));
        assert_ne!(id(7).number(other), Some(7));
    }

    #[test]
    fn other_spellings_are_refused() {
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
