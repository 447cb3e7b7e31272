//! Command-line option of rate limits: `default` stands for `null`.

use strum::VariantArray as _;
use vouchsafe_domain::limits::{InvalidLimit, Limit, RequestClass};

use super::{LimitsPatch, Nullable};

#[derive(clap::Args)]
#[group(id = "LimitsPatch")]
struct LimitsOption {
    /// Rate limit, e.g. orders=500/60 (500 in 60 seconds) or orders=default. Can be repeated.
    #[arg(long = "limit", value_name = "CLASS=QUOTA/SECONDS", value_parser = parse_limit)]
    limits: Vec<ClassLimit>,
}

/// Rate limit of one class.
type ClassLimit = (RequestClass, Nullable<Limit>);

impl From<LimitsOption> for LimitsPatch {
    fn from(option: LimitsOption) -> Self {
        let mut patch = Self::default();
        for (class, limit) in option.limits {
            *patch.get_mut(class) = Some(limit);
        }
        patch
    }
}

vouchsafe_domain::parse_as_options!(LimitsPatch, LimitsOption);

fn parse_limit(text: &str) -> Result<ClassLimit, String> {
    let (class, limit) = text
        .split_once('=')
        .ok_or("expected CLASS=QUOTA/SECONDS or CLASS=default")?;
    let class = class.parse().map_err(|_| {
        let classes = RequestClass::VARIANTS.iter().map(|class| class.into_str());
        format!("the classes are {}", classes.collect::<Vec<_>>().join(", "))
    })?;
    let limit = match limit {
        "default" => None,
        limit => Some(limit.parse().map_err(|error: InvalidLimit| error.to_string())?),
    };
    Ok((class, limit))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn limits_are_parsed_by_class() {
        let limits = ["orders=500/60", "general=default"].map(|text| parse_limit(text).unwrap());
        let patch = LimitsPatch::from(LimitsOption {
            limits: limits.to_vec(),
        });
        assert_eq!(
            json!(patch),
            json!({ "orders": { "quota": 500, "window_s": 60 }, "general": null })
        );
        for text in [
            "orders",
            "orders=",
            "orders=5",
            "orders=5/x",
            "orders=-5/60",
            "order=5/60",
        ] {
            assert!(parse_limit(text).is_err(), "{text}");
        }
    }
}
