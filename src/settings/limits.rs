//! How many requests pass, where a partner was given no limits of its own (contract §8).

use clap::Args;

use crate::access::limits::{DefaultLimits, Limit};

/// A limit for each class of requests.
#[derive(Debug, Clone, Args)]
pub struct LimitSettings {
    /// How many orders an API key may place, unless its partner has a limit of its own; the same holds below.
    #[arg(
        long,
        env = "VOUCHSAFE_LIMIT_ORDERS",
        default_value = "100/60",
        value_name = "QUOTA/SECONDS"
    )]
    pub limit_orders: Limit,

    /// How many other requests.
    #[arg(
        long,
        env = "VOUCHSAFE_LIMIT_GENERAL",
        default_value = "1000/3600",
        value_name = "QUOTA/SECONDS"
    )]
    pub limit_general: Limit,

    /// How many requests about credentials; and, for each client address, how many that fail to authenticate.
    #[arg(
        long,
        env = "VOUCHSAFE_LIMIT_AUTH",
        default_value = "5/60",
        value_name = "QUOTA/SECONDS"
    )]
    pub limit_auth: Limit,

    /// How often the codes of an order.
    #[arg(
        long,
        env = "VOUCHSAFE_LIMIT_VOUCHERS",
        default_value = "100/60",
        value_name = "QUOTA/SECONDS"
    )]
    pub limit_vouchers: Limit,
}

impl LimitSettings {
    /// As access knows them.
    #[must_use]
    pub const fn defaults(&self) -> DefaultLimits {
        DefaultLimits {
            orders: self.limit_orders,
            general: self.limit_general,
            auth: self.limit_auth,
            vouchers: self.limit_vouchers,
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::access::limits::Class;

    #[derive(Debug, Parser)]
    struct Program {
        #[command(flatten)]
        limits: LimitSettings,
    }

    fn read(arguments: &[&str]) -> Result<DefaultLimits, clap::Error> {
        let arguments = ["program"].iter().chain(arguments);
        Program::try_parse_from(arguments).map(|program| program.limits.defaults())
    }

    #[test]
    fn each_class_has_a_default_and_a_setting() {
        for (class, default) in [
            (Class::Orders, "100/60"),
            (Class::General, "1000/3600"),
            (Class::Auth, "5/60"),
            (Class::Vouchers, "100/60"),
        ] {
            assert_eq!(read(&[]).unwrap().of(class).to_string(), default);
            let flag = format!("--limit-{}", class.as_str());
            assert_eq!(read(&[&flag, "7/9"]).unwrap().of(class).to_string(), "7/9");
            let refused = read(&[&flag, "0/60"]).unwrap_err().to_string();
            assert!(refused.contains("a quota of 1 to"), "{refused}");
        }
    }
}
