//! How things are named: ids with a prefix that sort by the time they were made.
//!
//! Inside and in the database an id is its 16 bytes (UUID version 7); on the wire it is the prefix and 32 lower-case
//! hex digits, e.g. `ord_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f` (contract: "ids carry a prefix and sort by time").

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
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

            /// A new id of this moment.
            #[must_use]
            pub fn generate() -> Self {
                Self(Uuid::now_v7())
            }

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
    use super::*;

    #[test]
    fn an_id_reads_back_as_it_was_written() {
        let id = OrderId::generate();
        assert_eq!(id.to_string().parse(), Ok(id));
        assert_eq!(id.to_string().len(), 36);
    }

    #[test]
    fn ids_sort_by_the_time_they_were_made_in_text_too() {
        let ids: Vec<_> = (0..1_000).map(|_| OrderId::generate()).collect();
        assert!(ids.is_sorted());
        assert!(
            ids.iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .is_sorted()
        );
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
