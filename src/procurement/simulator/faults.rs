//! What can go wrong at the simulator, and with which purchases does it?
//!
//! Rule: what goes wrong with a purchase is decided when its key is first seen, and stays with it.

use std::str::FromStr;

/// The ids of products that name their fault begin so.
const PRODUCT_PREFIX: &str = "sim-";

/// What goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fault {
    /// The first answer comes late.
    Slow,
    /// It sells, then holds the first answer back for longer than anybody waits.
    Timeout,
    /// It sells, then drops the connection in the middle of the first answer.
    Drop,
    /// The first call is answered 503, and nothing is sold.
    Down,
    /// The first call is answered 429, and nothing is sold.
    Busy,
    OutOfStock,
    /// It sells half, rounded down, and never the rest.
    Part,
    /// It sells half, rounded down, and the rest when it is asked again.
    Pending,
    /// The first voucher has the code of an earlier sale of the product.
    RepeatCode,
    /// The first two vouchers have one code.
    SameCode,
    /// It sells one voucher more than was asked for.
    TooMany,
    /// The first voucher is of another product.
    OtherSku,
    /// The first voucher expired long ago.
    Expired,
    /// The first voucher has a negative price.
    NegativePrice,
    /// Its answers are not what the protocol says.
    WrongSchema,
    /// Its answers have 10 MB.
    Huge,
    /// Its books lack the first voucher.
    RecordDropped,
    /// Its books have a voucher that was not sold.
    RecordAdded,
    /// Its books have the first voucher at twice its face value.
    RecordAltered,
}

impl Fault {
    /// All of them, with the word for each and what it does.
    pub const ALL: [(Self, &str, &str); 19] = [
        (Self::Slow, "slow", "the first answer comes after --slow-ms"),
        (
            Self::Timeout,
            "timeout",
            "sells, then holds the first answer back",
        ),
        (
            Self::Drop,
            "drop",
            "sells, then drops the connection in the middle of the first answer",
        ),
        (
            Self::Down,
            "down",
            "the first call is answered 503, nothing is sold",
        ),
        (
            Self::Busy,
            "busy",
            "the first call is answered 429, nothing is sold",
        ),
        (Self::OutOfStock, "out-of-stock", "sells nothing"),
        (Self::Part, "part", "sells half, rounded down, never the rest"),
        (
            Self::Pending,
            "pending",
            "sells half, and the rest when it is asked again",
        ),
        (
            Self::RepeatCode,
            "repeat-code",
            "repeats a code of an earlier sale of the product",
        ),
        (Self::SameCode, "same-code", "two vouchers with one code"),
        (Self::TooMany, "too-many", "a voucher more than was asked for"),
        (Self::OtherSku, "other-sku", "a voucher of another product"),
        (Self::Expired, "expired", "a voucher that expired"),
        (
            Self::NegativePrice,
            "negative-price",
            "a voucher with a negative price",
        ),
        (
            Self::WrongSchema,
            "wrong-schema",
            "answers that are not what the protocol says",
        ),
        (Self::Huge, "huge", "answers of 10 MB"),
        (Self::RecordDropped, "record-dropped", "the books lack a voucher"),
        (
            Self::RecordAdded,
            "record-added",
            "the books have a voucher that was not sold",
        ),
        (
            Self::RecordAltered,
            "record-altered",
            "the books have a voucher at twice its face value",
        ),
    ];
}

/// A text that names no fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected a fault such as slow, or slow=3 for the first 3 purchases; see --help")]
pub struct UnknownFault;

impl FromStr for Fault {
    type Err = UnknownFault;

    fn from_str(text: &str) -> Result<Self, UnknownFault> {
        let named = Self::ALL.iter().find(|(_, word, _)| *word == text);
        named.map(|(fault, ..)| *fault).ok_or(UnknownFault)
    }
}

/// A fault, and how many purchases it is still for; `None` is all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FaultPlan {
    fault: Fault,
    remaining: Option<u32>,
}

impl FromStr for FaultPlan {
    type Err = UnknownFault;

    fn from_str(text: &str) -> Result<Self, UnknownFault> {
        let (word, left) = match text.split_once('=') {
            Some((word, count)) => (word, Some(count.parse().map_err(|_| UnknownFault)?)),
            None => (text, None),
        };
        Ok(Self {
            fault: word.parse()?,
            remaining: left,
        })
    }
}

impl FaultPlan {
    /// The fault, if the next purchase has it.
    fn take(&mut self) -> Option<Fault> {
        match &mut self.remaining {
            None => Some(self.fault),
            Some(0) => None,
            Some(left) => {
                *left -= 1;
                Some(self.fault)
            }
        }
    }
}

/// What goes wrong with the next purchase, which is of this product.
pub(super) fn faults_of_next_purchase(plans: &mut [FaultPlan], product_id: &str) -> Vec<Fault> {
    let own = product_id.strip_prefix(PRODUCT_PREFIX).and_then(|word| word.parse().ok());
    plans.iter_mut().filter_map(FaultPlan::take).chain(own).collect()
}

/// The faults, for the end of the long help.
pub(super) fn help_table() -> String {
    let lines = Fault::ALL.map(|(_, word, what)| format!("\n  {word:<15} {what}"));
    format!("Faults:{}", lines.concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_is_for_all_purchases_or_for_the_first() {
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
        assert_eq!(faults_of_next_purchase(&mut plans, "sim-huge"), [Fault::Slow, Fault::Huge]);
        assert_eq!(faults_of_next_purchase(&mut [], "sim-unheard-of"), []);
    }

    #[test]
    fn the_page_of_the_protocol_has_every_fault() {
        let page = include_str!("../../../docs/vendor-protocol.md");
        let rows = page
            .lines()
            .skip_while(|line| *line != "| Fault | What it does |");
        let rows: Vec<&str> = rows.skip(2).take_while(|line| line.starts_with('|')).collect();
        let expected = Fault::ALL
            .map(|(_, word, what)| format!("| `{word}` | {} |", what.replace("--slow-ms", "`--slow-ms`")));
        assert_eq!(rows, expected);
    }

    #[test]
    fn a_text_names_one_fault_or_none() {
        for (fault, word, _) in Fault::ALL {
            assert_eq!(word.parse(), Ok(fault));
        }
        for text in ["", "Slow", "slow=", "slow=x", "slow=-1", "=1"] {
            assert_eq!(text.parse::<FaultPlan>(), Err(UnknownFault), "{text}");
        }
    }
}
