//! Faults of the vendor simulator.
//!
//! The first request under a key decides the faults of its purchase.

use std::str::FromStr;

/// Prefix of product ids that name a fault.
const PRODUCT_PREFIX: &str = "sim-";

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fault {
    /// The first response is delayed.
    Slow,
    /// It sells, then delays the first response beyond any client's timeout.
    Timeout,
    /// It sells, then drops the connection within the first response.
    Drop,
    /// The first call gets a 503, and nothing is sold.
    Down,
    /// The first call gets a 429, and nothing is sold.
    Busy,
    OutOfStock,
    /// It sells half, rounded down, and never the rest.
    Part,
    /// It sells half, rounded down, and the rest on the next call.
    Pending,
    /// The first voucher has the code of an earlier sale of the product.
    RepeatCode,
    /// The first voucher has the code of an earlier sale of the product and another PIN.
    OtherPin,
    /// The first two vouchers have the same code.
    SameCode,
    /// It sells one voucher more than requested.
    TooMany,
    /// The first voucher has another product.
    OtherSku,
    /// The first voucher has expired.
    Expired,
    NegativePrice,
    /// Its responses violate the protocol.
    WrongSchema,
    /// Its responses have 10 MB.
    Huge,
    /// Its records lack the first voucher.
    RecordDropped,
    /// Its records contain a voucher that was not sold.
    RecordAdded,
    /// Its records state twice the face value of the first voucher.
    RecordAltered,
}

impl Fault {
    /// Every fault with its name and description.
    pub const ALL: [(Self, &str, &str); 20] = [
        (Self::Slow, "slow", "delays the first response by --slow-ms"),
        (
            Self::Timeout,
            "timeout",
            "sells, then delays the first response beyond the client's timeout",
        ),
        (
            Self::Drop,
            "drop",
            "sells, then drops the connection within the first response",
        ),
        (
            Self::Down,
            "down",
            "answers the first call with 503, sells nothing",
        ),
        (
            Self::Busy,
            "busy",
            "answers the first call with 429, sells nothing",
        ),
        (Self::OutOfStock, "out-of-stock", "sells nothing"),
        (Self::Part, "part", "sells half, rounded down, never the rest"),
        (
            Self::Pending,
            "pending",
            "sells half, and the rest on the next call",
        ),
        (
            Self::RepeatCode,
            "repeat-code",
            "repeats a code of an earlier sale of the product",
        ),
        (
            Self::OtherPin,
            "other-pin",
            "repeats such a code with another PIN",
        ),
        (
            Self::SameCode,
            "same-code",
            "sells two vouchers with the same code",
        ),
        (Self::TooMany, "too-many", "sells one voucher more than requested"),
        (Self::OtherSku, "other-sku", "sells a voucher of another product"),
        (Self::Expired, "expired", "sells an expired voucher"),
        (
            Self::NegativePrice,
            "negative-price",
            "sells a voucher with a negative price",
        ),
        (
            Self::WrongSchema,
            "wrong-schema",
            "sends responses that violate the protocol",
        ),
        (Self::Huge, "huge", "sends responses of 10 MB"),
        (
            Self::RecordDropped,
            "record-dropped",
            "omits a voucher from the records",
        ),
        (
            Self::RecordAdded,
            "record-added",
            "adds a voucher to the records that was not sold",
        ),
        (
            Self::RecordAltered,
            "record-altered",
            "doubles the face value of a voucher in the records",
        ),
    ];
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected a fault such as slow, or slow=3 for the first 3 purchases; see --help")]
pub struct UnknownFault;

impl FromStr for Fault {
    type Err = UnknownFault;

    fn from_str(text: &str) -> Result<Self, UnknownFault> {
        let found = Self::ALL.iter().find(|(_, name, _)| *name == text);
        found.map(|(fault, ..)| *fault).ok_or(UnknownFault)
    }
}

/// A fault and the number of purchases that it still applies to; `None` is all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FaultPlan {
    fault: Fault,
    remaining: Option<u32>,
}

impl FromStr for FaultPlan {
    type Err = UnknownFault;

    fn from_str(text: &str) -> Result<Self, UnknownFault> {
        let (name, remaining) = match text.split_once('=') {
            Some((name, count)) => (name, Some(count.parse().map_err(|_| UnknownFault)?)),
            None => (text, None),
        };
        Ok(Self {
            fault: name.parse()?,
            remaining,
        })
    }
}

impl FaultPlan {
    /// The fault, if it applies to the next purchase.
    fn take(&mut self) -> Option<Fault> {
        match &mut self.remaining {
            None => Some(self.fault),
            Some(0) => None,
            Some(remaining) => {
                *remaining -= 1;
                Some(self.fault)
            }
        }
    }
}

/// The faults of the next purchase, which is of this product.
pub(super) fn faults_of_next_purchase(plans: &mut [FaultPlan], product_id: &str) -> Vec<Fault> {
    let own = product_id
        .strip_prefix(PRODUCT_PREFIX)
        .and_then(|name| name.parse().ok());
    plans.iter_mut().filter_map(FaultPlan::take).chain(own).collect()
}

/// The list of faults for the long help.
pub fn help_table() -> String {
    let lines = Fault::ALL.map(|(_, name, description)| format!("\n  {name:<15} {description}"));
    format!("Faults:{}", lines.concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fault_applies_to_all_or_the_first_purchases() {
        let mut plans: Vec<FaultPlan> = ["slow", "part=2", "down=0"]
            .map(|text| text.parse().unwrap())
            .into();
        for expected in [
            &[Fault::Slow, Fault::Part][..],
            &[Fault::Slow, Fault::Part],
            &[Fault::Slow],
            &[Fault::Slow],
        ] {
            assert_eq!(faults_of_next_purchase(&mut plans, "game-us"), expected);
        }
        assert_eq!(
            faults_of_next_purchase(&mut plans, "sim-huge"),
            [Fault::Slow, Fault::Huge]
        );
        assert_eq!(faults_of_next_purchase(&mut [], "sim-unheard-of"), []);
    }

    #[test]
    fn protocol_page_lists_every_fault() {
        let page = include_str!("../../../../docs/vendor-protocol.md");
        let rows = page
            .lines()
            .skip_while(|line| *line != "| Fault | What it does |");
        let rows: Vec<&str> = rows.skip(2).take_while(|line| line.starts_with('|')).collect();
        let expected = Fault::ALL.map(|(_, name, description)| {
            format!(
                "| `{name}` | {} |",
                description.replace("--slow-ms", "`--slow-ms`")
            )
        });
        assert_eq!(rows, expected);
    }

    #[test]
    fn fault_parses_its_name_only() {
        for (fault, name, _) in Fault::ALL {
            assert_eq!(name.parse(), Ok(fault));
        }
        for text in ["", "Slow", "slow=", "slow=x", "slow=-1", "=1"] {
            assert_eq!(text.parse::<FaultPlan>(), Err(UnknownFault), "{text}");
        }
    }
}
