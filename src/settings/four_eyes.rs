//! Which changes need a second operator (four-eyes principle).

use std::collections::BTreeMap;
use std::str::FromStr;

use vouchsafe_domain::money::{Amount, Currency};
use vouchsafe_domain::partner::approval_rule::Thresholds;
use vouchsafe_security::environment::Environment;

/// Setting of the four-eyes principle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FourEyes {
    Off,
    /// Postings to wallets need a second operator above the threshold of their currency, 0 if it has none.
    On(BTreeMap<Currency, Amount>),
}

impl FourEyes {
    /// The setting without another one.
    #[must_use]
    pub const fn default_of(environment: Environment) -> Self {
        match environment {
            Environment::Sandbox => Self::Off,
            Environment::Production => Self::On(BTreeMap::new()),
        }
    }

    #[must_use]
    pub const fn is_on(&self) -> bool {
        matches!(self, Self::On(_))
    }

    /// Whether a posting of this amount, which may be negative, needs a second operator.
    #[must_use]
    pub fn applies_to_posting(&self, amount: Amount, currency: Currency) -> bool {
        match self {
            Self::Off => false,
            Self::On(thresholds) => {
                let threshold = thresholds.get(&currency).copied().unwrap_or(Amount::ZERO);
                amount.minor().unsigned_abs() > threshold.minor().unsigned_abs()
            }
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected on, off, or thresholds such as USD=1000,JPY=100000")]
pub struct InvalidFourEyes;

impl FromStr for FourEyes {
    type Err = InvalidFourEyes;

    fn from_str(text: &str) -> Result<Self, InvalidFourEyes> {
        match text {
            "off" => return Ok(Self::Off),
            "on" => return Ok(Self::On(BTreeMap::new())),
            _ => {}
        }
        let Thresholds(thresholds) = text.parse().map_err(|_| InvalidFourEyes)?;
        Ok(Self::On(thresholds))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn posting_above_threshold_of_its_currency_needs_second_operator() {
        let (usd, eur): (Currency, Currency) = ("USD".parse().unwrap(), "EUR".parse().unwrap());
        let setting: FourEyes = "USD=1000, JPY=5".parse().unwrap();
        let amount = Amount::from_minor;
        assert!(!setting.applies_to_posting(amount(100_000), usd));
        assert!(setting.applies_to_posting(amount(100_001), usd));
        assert!(
            setting.applies_to_posting(amount(-100_001), usd),
            "it takes money away"
        );
        assert!(setting.applies_to_posting(amount(1), eur), "no threshold");
        assert!(!FourEyes::Off.applies_to_posting(amount(i64::MAX), eur));
        assert!(
            "on".parse::<FourEyes>()
                .unwrap()
                .applies_to_posting(amount(1), usd)
        );
    }

    #[test]
    fn production_needs_second_operator_without_a_setting() {
        assert!(FourEyes::default_of(Environment::Production).is_on());
        assert!(!FourEyes::default_of(Environment::Sandbox).is_on());
    }

    #[test]
    fn invalid_setting_is_rejected() {
        for invalid in [
            "",
            "yes",
            "USD",
            "USD=",
            "USD=-1",
            "USD=1,USD=2",
            "USD=1.001",
            "XX=1",
            "USD=1,",
        ] {
            assert_eq!(invalid.parse::<FourEyes>(), Err(InvalidFourEyes), "{invalid}");
        }
        assert_eq!("off".parse::<FourEyes>(), Ok(FourEyes::Off));
    }
}
