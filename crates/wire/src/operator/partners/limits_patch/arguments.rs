//! Command-line options of rate limits and ceilings: `default` and `none` stand for `null`.

use strum::VariantArray as _;
use vouchsafe_domain::limits::{InvalidLimit, Limit, RequestClass};

use super::{CeilingsPatch, LimitsPatch, Nullable};

#[derive(clap::Args)]
#[group(id = "LimitsPatch")]
struct LimitsOption {
    /// Rate limit, e.g. orders=500/60 (500 in 60 seconds) or orders=default. Can be repeated.
    #[arg(long = "limit", value_name = "CLASS=QUOTA/SECONDS", value_parser = parse_limit)]
    limits: Vec<ClassLimit>,
}

#[derive(clap::Args)]
#[group(id = "CeilingsPatch")]
struct CeilingsOption {
    /// Rate limit of all credentials together, e.g. orders=2000/60 or orders=none. Can be repeated.
    #[arg(long = "ceiling", value_name = "CLASS=QUOTA/SECONDS", value_parser = parse_ceiling)]
    ceilings: Vec<ClassLimit>,
}

/// Rate limit of one class.
type ClassLimit = (RequestClass, Nullable<Limit>);

impl From<LimitsOption> for LimitsPatch {
    fn from(option: LimitsOption) -> Self {
        to_patch(option.limits)
    }
}

impl From<CeilingsOption> for CeilingsPatch {
    fn from(option: CeilingsOption) -> Self {
        Self(to_patch(option.ceilings))
    }
}

vouchsafe_domain::parse_as_options!(LimitsPatch, LimitsOption);
vouchsafe_domain::parse_as_options!(CeilingsPatch, CeilingsOption);

fn to_patch(limits: Vec<ClassLimit>) -> LimitsPatch {
    let mut patch = LimitsPatch::default();
    for (class, limit) in limits {
        *patch.get_mut(class) = Some(limit);
    }
    patch
}

fn parse_limit(text: &str) -> Result<ClassLimit, String> {
    parse_class_limit(text, "default")
}

fn parse_ceiling(text: &str) -> Result<ClassLimit, String> {
    parse_class_limit(text, "none")
}

/// `null` is the word that removes the limit.
fn parse_class_limit(text: &str, null: &str) -> Result<ClassLimit, String> {
    let (class, limit) = text
        .split_once('=')
        .ok_or_else(|| format!("expected CLASS=QUOTA/SECONDS or CLASS={null}"))?;
    let class = class.parse().map_err(|_| {
        let classes = RequestClass::VARIANTS.iter().map(|class| class.into_str());
        format!("the classes are {}", classes.collect::<Vec<_>>().join(", "))
    })?;
    let limit = match limit {
        limit if limit == null => None,
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
        let ceilings = ["orders=500/60", "general=none"].map(|text| parse_ceiling(text).unwrap());
        let ceilings = CeilingsPatch::from(CeilingsOption {
            ceilings: ceilings.to_vec(),
        });
        assert_eq!(json!(ceilings), json!(patch));
        assert!(parse_ceiling("orders=default").is_err());
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
