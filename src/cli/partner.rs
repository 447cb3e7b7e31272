//! `vouchsafe partner`: partners, their terms and certification.

use std::convert::Infallible;

use clap::{Args, Subcommand};
use reqwest::Method;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};
use strum::VariantArray as _;
use vouchsafe_domain::limits::{InvalidLimit, Limit, RequestClass};

use super::CommandOutput;
use super::admin::{AdminClient, ListArgs, NO_BODY};
use super::examples::examples;
use super::id::{ObjectRef as _, PartnerRef};
use super::output::{self, Column};

const COLUMNS: [Column; 5] = [
    ("PARTNER", "partner_id"),
    ("NAME", "name"),
    ("SUSPENDED", "suspended"),
    ("ALLOWLIST", "allowlist"),
    ("CREATED", "created_at"),
];

const CERTIFICATION_COLUMNS: [Column; 5] = [
    ("POINT", "point"),
    ("STATE", "state"),
    ("WHEN", "at"),
    ("WHY", "why"),
    ("WHAT TO DO", "advice"),
];

#[derive(Debug, Subcommand)]
pub enum Action {
    /// Create a partner; its first secret is shown once.
    #[command(after_help = examples![
        "vouchsafe partner create --name 'Example Ltd' --allow 203.0.113.0/24",
        "vouchsafe partner create --name 'Example Ltd' --allow 203.0.113.7 --limit orders=500/60 --json",
    ])]
    Create(CreateArgs),
    /// List partners, newest first.
    #[command(after_help = examples!["vouchsafe partner list --limit 20"])]
    List(ListArgs),
    /// Show a partner with its credentials.
    #[command(after_help = examples!["vouchsafe partner show PARTNER_ID"])]
    Show(PartnerRef),
    /// Change the terms of a partner, effective at once.
    Set(Box<SetArgs>),
    /// Show the certification checks of a partner in the sandbox.
    #[command(after_help = examples![
        "vouchsafe partner certification PARTNER_ID --json > certification.json",
        "vouchsafe partner certification PARTNER_ID --start-over",
    ])]
    Certification {
        #[command(flatten)]
        partner: PartnerRef,
        /// Delete the observations, so that every check is open again.
        #[arg(long)]
        start_over: bool,
    },
    /// Suspend a partner: its requests are rejected.
    #[command(after_help = examples!["vouchsafe partner suspend PARTNER_ID"])]
    Suspend(PartnerRef),
    /// Resume a suspended partner.
    #[command(after_help = examples!["vouchsafe partner resume PARTNER_ID"])]
    Resume(PartnerRef),
}

#[derive(Debug, Args, Serialize)]
pub struct CreateArgs {
    /// Display name.
    #[arg(long)]
    name: String,
    /// Network or address from which it may call; without any, all are denied. Can be repeated.
    #[arg(long = "allow", value_name = "CIDR")]
    allowlist: Vec<String>,
    /// Rate limit, e.g. orders=500/60 (500 in 60 seconds). Can be repeated.
    #[arg(long = "limit", value_name = "CLASS=QUOTA/SECONDS", value_parser = read_limit)]
    #[serde(serialize_with = "serialize_limits")]
    limits: Vec<ClassLimit>,
}

#[derive(Debug, Args)]
#[command(after_help = examples![
    "vouchsafe partner set PARTNER_ID --limit orders=500/60 --limit general=default",
    r#"vouchsafe partner set PARTNER_ID --approval-rule '{"amount_over":{"USD":500}}' --cancel-window 3600"#,
])]
pub struct SetArgs {
    #[command(flatten)]
    partner: PartnerRef,
    #[command(flatten)]
    terms: TermsArgs,
}

/// Only the terms that are given are sent; `null` removes a term.
#[derive(Debug, Args, Serialize)]
#[group(required = true, multiple = true)]
struct TermsArgs {
    /// Network or address of the new allowlist. Can be repeated.
    #[arg(long = "allow", value_name = "CIDR")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    allowlist: Vec<String>,
    /// Rate limit, e.g. orders=500/60 or orders=default. Can be repeated.
    #[arg(long = "limit", value_name = "CLASS=QUOTA/SECONDS", value_parser = read_limit)]
    #[serde(skip_serializing_if = "Vec::is_empty", serialize_with = "serialize_limits")]
    limits: Vec<ClassLimit>,
    /// Seconds in which orders can be cancelled, or `default`.
    #[arg(long = "cancel-window", value_name = "SECONDS", value_parser = read_window)]
    #[serde(skip_serializing_if = "Option::is_none")]
    cancel_window_s: Option<Value>,
    /// Time of the passed certification, e.g. 2026-11-20T12:00:00Z, or `none`.
    #[arg(long, value_name = "TIME", value_parser = read_moment)]
    #[serde(skip_serializing_if = "Option::is_none")]
    certified_at: Option<Value>,
    /// Time of the signed agreement, or `none`.
    #[arg(long, value_name = "TIME", value_parser = read_moment)]
    #[serde(skip_serializing_if = "Option::is_none")]
    agreement_signed_at: Option<Value>,
    /// Rule for orders that wait for approval, as JSON, or `none`.
    #[arg(long, value_name = "JSON", value_parser = read_terms)]
    #[serde(skip_serializing_if = "Option::is_none")]
    approval_rule: Option<Value>,
    /// Products that it may order, as JSON {"categories":[…],"products":[…]}, or `none` for all.
    #[arg(long, value_name = "JSON", value_parser = read_terms)]
    #[serde(skip_serializing_if = "Option::is_none")]
    catalogue: Option<Value>,
}

pub(super) async fn run(action: Action, admin: &AdminClient) -> anyhow::Result<CommandOutput> {
    let (partner, terms) = match action {
        Action::Create(args) => return admin.post("/partners", &args).await,
        Action::List(args) => return admin.list("/partners", &args, &COLUMNS).await,
        Action::Show(partner) => return admin.get(&partner.path()).await,
        Action::Certification { partner, start_over } => {
            return certification(admin, &partner, start_over).await;
        }
        Action::Set(args) => (args.partner, json!(args.terms)),
        Action::Suspend(partner) => (partner, json!({ "suspended": true })),
        Action::Resume(partner) => (partner, json!({ "suspended": false })),
    };
    admin.change(Method::PATCH, &partner.path(), Some(&terms)).await
}

async fn certification(
    admin: &AdminClient,
    partner: &PartnerRef,
    start_over: bool,
) -> anyhow::Result<CommandOutput> {
    let path = format!("{}/certification", partner.path());
    if start_over {
        return admin.change(Method::DELETE, &path, NO_BODY).await;
    }
    let response = admin.call(Method::GET, &path, NO_BODY).await?;
    admin.show(response, |response| {
        output::format_field_table(response, "points", &CERTIFICATION_COLUMNS)
    })
}

/// Serializes limits as an object by class.
fn serialize_limits<S: Serializer>(limits: &[ClassLimit], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(limits.iter().map(|ClassLimit { class, limit }| (class, limit)))
}

/// Rate limit of one class; `None` resets it to the service's default.
#[derive(Debug, Clone, Copy)]
pub(super) struct ClassLimit {
    class: RequestClass,
    limit: Option<Limit>,
}

fn read_limit(text: &str) -> Result<ClassLimit, String> {
    let (class, limit) = text
        .split_once('=')
        .ok_or("expected CLASS=QUOTA/SECONDS or CLASS=default")?;
    let classes = || {
        RequestClass::VARIANTS
            .iter()
            .map(|class| class.into_str())
            .collect::<Vec<_>>()
    };
    let class = class
        .parse()
        .map_err(|_| format!("the classes are {}", classes().join(", ")))?;
    let limit = match limit {
        "default" => None,
        limit => Some(limit.parse().map_err(|error: InvalidLimit| error.to_string())?),
    };
    Ok(ClassLimit { class, limit })
}

fn read_window(text: &str) -> Result<Value, &'static str> {
    match text {
        "default" => Ok(Value::Null),
        seconds => match seconds.parse::<u32>() {
            Ok(seconds) => Ok(json!(seconds)),
            Err(_) => Err("expected a number of seconds, or default"),
        },
    }
}

/// The service validates the time.
fn read_moment(text: &str) -> Result<Value, Infallible> {
    Ok(match text {
        "none" => Value::Null,
        time => json!(time),
    })
}

fn read_terms(text: &str) -> Result<Value, String> {
    match text {
        "none" => Ok(Value::Null),
        terms => serde_json::from_str(terms).map_err(|error| format!("expected JSON or none: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_parsed_by_class() {
        let limits = ["orders=500/60", "general=default"].map(|text| read_limit(text).unwrap());
        let limits = serialize_limits(&limits, serde_json::value::Serializer).unwrap();
        assert_eq!(
            limits,
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
            assert!(read_limit(text).is_err(), "{text}");
        }
    }
}
