//! Default rate limits, for partners without individual limits (contract §8).

use clap::Args;
use vouchsafe_domain::limits::{DefaultLimits, Limit};
use vouchsafe_security::environment::Environment;

/// Rate limit of each request class.
#[derive(Debug, Clone, Args)]
pub struct LimitSettings {
    /// Rate limit of orders per API key and those rotated from it, unless the partner has its own limit.
    #[arg(
        long,
        env = "VOUCHSAFE_LIMIT_ORDERS",
        default_value = "100/60",
        value_name = "QUOTA/SECONDS"
    )]
    pub limit_orders: Limit,

    /// Rate limit of all other requests per API key and those rotated from it.
    #[arg(
        long,
        env = "VOUCHSAFE_LIMIT_GENERAL",
        default_value = "1000/3600",
        value_name = "QUOTA/SECONDS"
    )]
    pub limit_general: Limit,

    /// Rate limit of credential requests per API key and those rotated from it, and of failed authentications
    /// per client address.
    #[arg(
        long,
        env = "VOUCHSAFE_LIMIT_AUTH",
        default_value = "5/60",
        value_name = "QUOTA/SECONDS"
    )]
    pub limit_auth: Limit,

    /// Rate limit of requests for voucher codes per API key and those rotated from it.
    #[arg(
        long,
        env = "VOUCHSAFE_LIMIT_VOUCHERS",
        default_value = "100/60",
        value_name = "QUOTA/SECONDS"
    )]
    pub limit_vouchers: Limit,

    /// Rotations that a partner may request of a credential and of those that came from it by rotation, in
    /// any 24 hours [default: 10 in production, 1000 in the sandbox, where programs are tested].
    #[arg(long, env = "VOUCHSAFE_ROTATIONS_PER_DAY", value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=1_000))]
    rotations_per_day: Option<u32>,

    /// Maximum number of requests in flight per API key on this node. A request is in flight until its
    /// response is written, but not while it waits (Prefer: wait).
    #[arg(
        long,
        env = "VOUCHSAFE_MAX_IN_FLIGHT",
        default_value_t = 256,
        value_name = "REQUESTS",
        value_parser = clap::value_parser!(u16).range(1..)
    )]
    pub max_in_flight: u16,

    /// Seconds in which a client must read a response before its connection is closed.
    #[arg(
        long,
        env = "VOUCHSAFE_RESPONSE_DEADLINE",
        default_value_t = 30,
        value_name = "SECONDS",
        value_parser = clap::value_parser!(u16).range(1..=600)
    )]
    pub response_deadline: u16,
}

impl LimitSettings {
    pub(crate) fn rotations_per_day(&self, environment: Environment) -> u32 {
        self.rotations_per_day.unwrap_or(match environment {
            Environment::Production => 10,
            Environment::Sandbox => 1_000,
        })
    }

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
    use vouchsafe_domain::limits::RequestClass;

    use super::*;

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
    fn each_class_has_a_default_and_a_flag() {
        for (class, default) in [
            (RequestClass::Orders, "100/60"),
            (RequestClass::General, "1000/3600"),
            (RequestClass::Auth, "5/60"),
            (RequestClass::Vouchers, "100/60"),
        ] {
            assert_eq!(read(&[]).unwrap().get(class).to_string(), default);
            let flag = format!("--limit-{}", class.into_str());
            assert_eq!(read(&[&flag, "7/9"]).unwrap().get(class).to_string(), "7/9");
            let message = read(&[&flag, "0/60"]).unwrap_err().to_string();
            assert!(message.contains("a quota of 1 to"), "{message}");
        }
    }
}
