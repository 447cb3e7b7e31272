//! Money: whole minor units of an ISO 4217 currency, with checked arithmetic and exact decimal formatting.
//!
//! No floating-point number ever holds an amount. On the wire an amount is a JSON number or a string; it is
//! parsed from its text as a decimal and written as a raw JSON number (`25.00`, JPY `25`, KWD `25.000`).

use std::fmt;
use std::str::FromStr;

use rust_decimal::Decimal;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

/// ISO 4217 currencies with two decimals. Sorted for binary search.
const TWO_DECIMALS: &[[u8; 3]] = &[
    *b"AED", *b"AFN", *b"ALL", *b"AMD", *b"AOA", *b"ARS", *b"AUD", *b"AWG", *b"AZN", *b"BAM", *b"BBD",
    *b"BDT", *b"BGN", *b"BMD", *b"BND", *b"BOB", *b"BRL", *b"BSD", *b"BTN", *b"BWP", *b"BYN", *b"BZD",
    *b"CAD", *b"CDF", *b"CHF", *b"CNY", *b"COP", *b"CRC", *b"CUP", *b"CVE", *b"CZK", *b"DKK", *b"DOP",
    *b"DZD", *b"EGP", *b"ERN", *b"ETB", *b"EUR", *b"FJD", *b"FKP", *b"GBP", *b"GEL", *b"GHS", *b"GIP",
    *b"GMD", *b"GTQ", *b"GYD", *b"HKD", *b"HNL", *b"HTG", *b"HUF", *b"IDR", *b"ILS", *b"INR", *b"IRR",
    *b"JMD", *b"KES", *b"KGS", *b"KHR", *b"KPW", *b"KYD", *b"KZT", *b"LAK", *b"LBP", *b"LKR", *b"LRD",
    *b"LSL", *b"MAD", *b"MDL", *b"MGA", *b"MKD", *b"MMK", *b"MNT", *b"MOP", *b"MRU", *b"MUR", *b"MVR",
    *b"MWK", *b"MXN", *b"MYR", *b"MZN", *b"NAD", *b"NGN", *b"NIO", *b"NOK", *b"NPR", *b"NZD", *b"PAB",
    *b"PEN", *b"PGK", *b"PHP", *b"PKR", *b"PLN", *b"QAR", *b"RON", *b"RSD", *b"RUB", *b"SAR", *b"SBD",
    *b"SCR", *b"SDG", *b"SEK", *b"SGD", *b"SHP", *b"SLE", *b"SOS", *b"SRD", *b"SSP", *b"STN", *b"SVC",
    *b"SYP", *b"SZL", *b"THB", *b"TJS", *b"TMT", *b"TOP", *b"TRY", *b"TTD", *b"TWD", *b"TZS", *b"UAH",
    *b"USD", *b"UYU", *b"UZS", *b"VES", *b"WST", *b"XCD", *b"YER", *b"ZAR", *b"ZMW",
];

/// ISO 4217 currencies without decimals. Sorted for binary search.
const NO_DECIMALS: &[[u8; 3]] = &[
    *b"BIF", *b"CLP", *b"DJF", *b"GNF", *b"ISK", *b"JPY", *b"KMF", *b"KRW", *b"PYG", *b"RWF", *b"UGX",
    *b"VND", *b"VUV", *b"XAF", *b"XOF", *b"XPF",
];

/// ISO 4217 currencies with three decimals. Sorted for binary search.
const THREE_DECIMALS: &[[u8; 3]] = &[*b"BHD", *b"IQD", *b"JOD", *b"KWD", *b"LYD", *b"OMR", *b"TND"];

/// Why a text is not a currency or not an amount of one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidMoney {
    /// Not an active ISO 4217 code.
    #[error("expected the ISO 4217 code of a currency that is in use, such as USD, in upper case in a body")]
    Currency,
    #[error("expected a decimal number, such as 25.00")]
    NotANumber,
    #[error("{currency} has {exponent} decimals, the amount has more")]
    TooManyDecimals {
        currency: Currency,
        /// The number of decimals of the currency.
        exponent: u32,
    },
    /// The amount does not fit 64 bits of minor units.
    #[error("the amount is too large")]
    OutOfRange,
}

/// A settlement currency: an active ISO 4217 code.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Currency([u8; 3]);

impl Currency {
    /// The number of decimals of the currency.
    #[must_use]
    pub fn exponent(self) -> u32 {
        if NO_DECIMALS.binary_search(&self.0).is_ok() {
            0
        } else if THREE_DECIMALS.binary_search(&self.0).is_ok() {
            3
        } else {
            2
        }
    }

    /// The three-letter code.
    #[must_use]
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

impl FromStr for Currency {
    type Err = InvalidMoney;

    fn from_str(text: &str) -> Result<Self, InvalidMoney> {
        let code: [u8; 3] = text.as_bytes().try_into().map_err(|_| InvalidMoney::Currency)?;
        let known = [TWO_DECIMALS, NO_DECIMALS, THREE_DECIMALS]
            .iter()
            .any(|list| list.binary_search(&code).is_ok());
        known.then_some(Self(code)).ok_or(InvalidMoney::Currency)
    }
}

impl fmt::Display for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for Currency {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for Currency {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// A number of minor units (cents, yen, fils) of a currency known from the context. May be negative in a
/// ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "sqlx", derive(sqlx::Type), sqlx(transparent))]
#[serde(transparent)]
pub struct Amount(i64);

impl Amount {
    pub const ZERO: Self = Self(0);

    /// Creates an amount from minor units.
    #[must_use]
    pub const fn from_minor(minor: i64) -> Self {
        Self(minor)
    }

    /// The number of minor units.
    #[must_use]
    pub const fn minor(self) -> i64 {
        self.0
    }

    /// The sum, or `None` on overflow.
    #[must_use]
    pub fn checked_add(self, other: Self) -> Option<Self> {
        self.0.checked_add(other.0).map(Self)
    }

    /// The difference, or `None` on overflow.
    #[must_use]
    pub fn checked_sub(self, other: Self) -> Option<Self> {
        self.0.checked_sub(other.0).map(Self)
    }

    /// The product, or `None` on overflow.
    #[must_use]
    pub fn checked_mul(self, times: u32) -> Option<Self> {
        self.0.checked_mul(i64::from(times)).map(Self)
    }

    /// The negated amount, or `None` on overflow.
    #[must_use]
    pub fn checked_neg(self) -> Option<Self> {
        self.0.checked_neg().map(Self)
    }

    /// Parses a decimal text as an amount of `currency`. Zeros at the end of the fraction do not count as
    /// decimals.
    ///
    /// # Errors
    /// [`InvalidMoney`] if the text is not a decimal number, has more decimals than the currency, or is out
    /// of range.
    pub fn parse(text: &str, currency: Currency) -> Result<Self, InvalidMoney> {
        let decimal = parse_decimal(text)?;
        let exponent = currency.exponent();
        if decimal.scale() > exponent {
            return Err(InvalidMoney::TooManyDecimals { currency, exponent });
        }
        let minor = decimal
            .mantissa()
            .checked_mul(10_i128.pow(exponent - decimal.scale()));
        let minor = minor
            .and_then(|m| i64::try_from(m).ok())
            .ok_or(InvalidMoney::OutOfRange)?;
        Ok(Self(minor))
    }

    /// Combines the amount with its currency.
    #[must_use]
    pub const fn of(self, currency: Currency) -> Money {
        Money {
            amount: self,
            currency,
        }
    }
}

/// Accepts plain decimals only: no exponent, no sign except a leading minus, and a digit on each side of the
/// point.
fn parse_decimal(text: &str) -> Result<Decimal, InvalidMoney> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, "0"));
    let all_digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    if !all_digits(whole) || !all_digits(fraction) {
        return Err(InvalidMoney::NotANumber);
    }
    let significant = match text.split_once('.') {
        Some(_) => text.trim_end_matches('0').trim_end_matches('.'),
        None => text,
    };
    Decimal::from_str_exact(significant).map_err(|_| InvalidMoney::OutOfRange)
}

/// An amount with its currency; displays as an exact decimal with the currency's number of decimals.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Money {
    /// In minor units.
    pub amount: Amount,
    pub currency: Currency,
}

impl fmt::Display for Money {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Decimal::new(self.amount.minor(), self.currency.exponent()).fmt(f)
    }
}

impl fmt::Debug for Money {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self} {}", self.currency)
    }
}

impl Serialize for Money {
    /// Writes the decimal as a raw JSON number: `25.00` keeps its zeros and no float is involved.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let text = self.to_string();
        let number: &RawValue = serde_json::from_str(&text).map_err(serde::ser::Error::custom)?;
        number.serialize(serializer)
    }
}

/// The text of a JSON number or string that holds an amount; parsed once its currency is known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AmountText(String);

impl AmountText {
    /// Parses the text as an amount of `currency`.
    ///
    /// # Errors
    /// As [`Amount::parse`].
    pub fn parse(&self, currency: Currency) -> Result<Amount, InvalidMoney> {
        Amount::parse(&self.0, currency)
    }

    /// Whether both texts are the same number, such as `25` and `25.00`.
    #[must_use]
    pub fn is_same_number(&self, other: &Self) -> bool {
        let number = |text: &str| text.parse::<Decimal>().ok();
        self.0 == other.0 || number(&self.0).is_some_and(|found| number(&other.0) == Some(found))
    }
}

impl From<&str> for AmountText {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl<'de> Deserialize<'de> for AmountText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = <&RawValue>::deserialize(deserializer)?.get();
        let first = raw.bytes().next().unwrap_or_default();
        match first {
            b'"' => serde_json::from_str(raw)
                .map(Self)
                .map_err(serde::de::Error::custom),
            b'-' | b'0'..=b'9' => Ok(Self(raw.to_owned())),
            _ => Err(serde::de::Error::custom(
                "expected an amount as a number or a string",
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn currency(code: &str) -> Currency {
        code.parse().unwrap()
    }

    #[test]
    fn currency_tables_are_sorted_and_disjoint() {
        let tables = [TWO_DECIMALS, NO_DECIMALS, THREE_DECIMALS];
        assert!(tables.iter().all(|t| t.is_sorted()));
        let mut all: Vec<_> = tables.concat();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), tables.iter().map(|t| t.len()).sum::<usize>());
    }

    #[test]
    fn amounts_parse_with_the_decimals_of_their_currency() {
        let cases: &[(&str, &str, Result<i64, &str>)] = &[
            ("25", "USD", Ok(2_500)),
            ("25.0", "USD", Ok(2_500)),
            ("25.00", "USD", Ok(2_500)),
            ("0.01", "USD", Ok(1)),
            ("-3.50", "USD", Ok(-350)),
            ("90071992547409.93", "USD", Ok(9_007_199_254_740_993)),
            ("25", "JPY", Ok(25)),
            ("25.125", "KWD", Ok(25_125)),
            ("25.005", "USD", Err("decimals")),
            ("25.0", "JPY", Ok(25)),
            ("1000.00", "JPY", Ok(1_000)),
            ("25.1250", "KWD", Ok(25_125)),
            ("0.000", "USD", Ok(0)),
            ("25.000000000000000000000000000000000000", "USD", Ok(2_500)),
            ("25.1", "JPY", Err("decimals")),
            ("25.0001", "KWD", Err("decimals")),
            ("92233720368547758.08", "USD", Err("too large")),
            ("9223372036854775807", "USD", Err("too large")),
            ("99999999999999999999999999999999999", "USD", Err("too large")),
            ("1e3", "USD", Err("number")),
            ("+1", "USD", Err("number")),
            (".5", "USD", Err("number")),
            ("5.", "USD", Err("number")),
            ("--5", "USD", Err("number")),
            ("1_000", "USD", Err("number")),
            ("", "USD", Err("number")),
            ("NaN", "USD", Err("number")),
        ];
        for (text, code, expected) in cases {
            match (Amount::parse(text, currency(code)), expected) {
                (Ok(amount), Ok(minor)) => assert_eq!(amount.minor(), *minor, "{text} {code}"),
                (Err(error), Err(part)) => {
                    assert!(error.to_string().contains(part), "{text} {code}: {error}")
                }
                (got, expected) => panic!("{text} {code}: {got:?}, expected {expected:?}"),
            }
        }
    }

    #[test]
    fn money_serializes_as_number_with_all_decimals() {
        for (minor, code, text) in [
            (2_500, "USD", "25.00"),
            (-5, "USD", "-0.05"),
            (25, "JPY", "25"),
            (25_000, "KWD", "25.000"),
            (0, "EUR", "0.00"),
        ] {
            let money = Amount::from_minor(minor).of(currency(code));
            assert_eq!(serde_json::to_string(&money).unwrap(), text);
        }
    }

    #[test]
    fn amount_deserializes_from_number_or_string() {
        for json in ["25.50", "\"25.50\""] {
            let text: AmountText = serde_json::from_str(json).unwrap();
            assert_eq!(text.parse(currency("USD")).unwrap().minor(), 2_550);
        }
        for json in ["true", "null", "[1]", "{}"] {
            assert!(serde_json::from_str::<AmountText>(json).is_err(), "{json}");
        }
    }

    #[test]
    fn unknown_currencies_are_refused() {
        for text in ["", "usd", "US", "USDX", "ABC", "ÄÖ"] {
            assert_eq!(text.parse::<Currency>(), Err(InvalidMoney::Currency), "{text}");
        }
    }

    proptest! {
        #[test]
        fn money_round_trips_as_json(minor in any::<i64>(), code in prop::sample::select(vec!["USD", "JPY", "KWD"])) {
            let money = Amount::from_minor(minor).of(currency(code));
            prop_assert_eq!(Amount::parse(&money.to_string(), money.currency), Ok(money.amount));
        }

        #[test]
        fn parsing_any_text_does_not_panic(text in ".{0,40}") {
            let _ = Amount::parse(&text, currency("KWD"));
        }
    }
}
