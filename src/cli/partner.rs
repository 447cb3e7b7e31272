//! `vouchsafe partner`: partners, their terms and certification.

use std::convert::Infallible;

use clap::{Args, Subcommand};
use reqwest::Method;
use serde_json::{Value, json};
use vouchsafe_domain::limits::{InvalidLimit, Limit, RequestClass};

use super::admin::{AdminClient, AdminOptions, NO_BODY, PageOptions, percent_encode};
use super::examples::examples;
use super::output::{self, Column};
use super::{CommandOutput, id};

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

#[derive(Debug, Args)]
#[command(after_help = examples!["vouchsafe partner list"])]
pub struct PartnerArgs {
    #[command(flatten)]
    pub(super) options: AdminOptions,
    #[command(subcommand)]
    pub(super) action: Action,
}

#[derive(Debug, Subcommand)]
pub(super) enum Action {
    /// Create a partner; its first secret is shown once.
    #[command(after_help = examples![
        "vouchsafe partner create --name 'Example Ltd' --allow 203.0.113.0/24",
        "vouchsafe partner create --name 'Example Ltd' --allow 203.0.113.7 --limit orders=500/60 --json",
    ])]
    Create {
        /// Display name.
        #[arg(long)]
        name: String,
        /// Network or address from which it may call; without any, all are denied. Can be repeated.
        #[arg(long = "allow", value_name = "CIDR")]
        allow: Vec<String>,
        /// Rate limit, e.g. orders=500/60 (500 in 60 seconds). Can be repeated.
        #[arg(long = "limit", value_name = "CLASS=QUOTA/SECONDS", value_parser = read_limit)]
        limits: Vec<ClassLimit>,
    },
    /// List partners, newest first.
    #[command(after_help = examples!["vouchsafe partner list --limit 20"])]
    List(PageOptions),
    /// Show a partner with its credentials.
    #[command(after_help = examples!["vouchsafe partner show PARTNER_ID"])]
    Show {
        /// Partner ID.
        #[arg(value_parser = id::partner)]
        partner_id: String,
    },
    /// Change the terms of a partner, effective at once.
    Set(Box<SetArgs>),
    /// Show the certification checks of a partner in the sandbox.
    #[command(after_help = examples![
        "vouchsafe partner certification PARTNER_ID --json > certification.json",
        "vouchsafe partner certification PARTNER_ID --start-over",
    ])]
    Certification {
        /// Partner ID.
        #[arg(value_parser = id::partner)]
        partner_id: String,
        /// Delete the observations, so that every check is open again.
        #[arg(long)]
        start_over: bool,
    },
    /// Suspend a partner: its requests are rejected.
    #[command(after_help = examples!["vouchsafe partner suspend PARTNER_ID"])]
    Suspend {
        /// Partner ID.
        #[arg(value_parser = id::partner)]
        partner_id: String,
    },
    /// Resume a suspended partner.
    #[command(after_help = examples!["vouchsafe partner resume PARTNER_ID"])]
    Resume {
        /// Partner ID.
        #[arg(value_parser = id::partner)]
        partner_id: String,
    },
}

#[derive(Debug, Args)]
#[command(after_help = examples![
    "vouchsafe partner set PARTNER_ID --limit orders=500/60 --limit general=default",
    r#"vouchsafe partner set PARTNER_ID --approval-rule '{"amount_over":{"USD":500}}' --cancel-window 3600"#,
])]
pub(super) struct SetArgs {
    /// Partner ID.
    #[arg(value_parser = id::partner)]
    partner_id: String,
    #[command(flatten)]
    terms: TermsArgs,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = true)]
struct TermsArgs {
    /// Network or address of the new allowlist. Can be repeated.
    #[arg(long = "allow", value_name = "CIDR")]
    allow: Vec<String>,
    /// Rate limit, e.g. orders=500/60 or orders=default. Can be repeated.
    #[arg(long = "limit", value_name = "CLASS=QUOTA/SECONDS", value_parser = read_limit)]
    limits: Vec<ClassLimit>,
    /// Seconds in which orders can be cancelled, or `default`.
    #[arg(long, value_name = "SECONDS", value_parser = read_window)]
    cancel_window: Option<Value>,
    /// Time of the passed certification, e.g. 2026-11-20T12:00:00Z, or `none`.
    #[arg(long, value_name = "TIME", value_parser = read_moment)]
    certified_at: Option<Value>,
    /// Time of the signed agreement, or `none`.
    #[arg(long, value_name = "TIME", value_parser = read_moment)]
    agreement_signed_at: Option<Value>,
    /// Rule for orders that wait for approval, as JSON, or `none`.
    #[arg(long, value_name = "JSON", value_parser = read_terms)]
    approval_rule: Option<Value>,
    /// Products that it may order, as JSON {"categories":[…],"products":[…]}, or `none` for all.
    #[arg(long, value_name = "JSON", value_parser = read_terms)]
    catalogue: Option<Value>,
}

pub(super) async fn run(action: Action, admin: &AdminClient) -> anyhow::Result<CommandOutput> {
    match action {
        Action::Create { name, allow, limits } => {
            let body = json!({ "name": name, "allowlist": allow, "limits": limits_body(&limits) });
            admin.change(Method::POST, "/partners", Some(&body)).await
        }
        Action::List(page) => admin.show_list("/partners", &page.query(), &COLUMNS).await,
        Action::Show { partner_id } => admin.show_object(&partner_path(&partner_id)).await,
        Action::Set(args) => {
            let body = terms_body(&args.terms);
            admin
                .change(Method::PATCH, &partner_path(&args.partner_id), Some(&body))
                .await
        }
        Action::Certification {
            partner_id,
            start_over,
        } => {
            let path = format!("{}/certification", partner_path(&partner_id));
            if start_over {
                admin.change(Method::DELETE, &path, NO_BODY).await
            } else {
                let response = admin.call(Method::GET, &path, NO_BODY).await?;
                admin.show(response, |response| {
                    output::format_field_table(response, "points", &CERTIFICATION_COLUMNS)
                })
            }
        }
        Action::Suspend { partner_id } => set_suspended(admin, &partner_id, true).await,
        Action::Resume { partner_id } => set_suspended(admin, &partner_id, false).await,
    }
}

pub(super) fn partner_path(partner_id: &str) -> String {
    format!("/partners/{}", percent_encode(partner_id))
}

async fn set_suspended(
    admin: &AdminClient,
    partner_id: &str,
    suspended: bool,
) -> anyhow::Result<CommandOutput> {
    admin
        .change(
            Method::PATCH,
            &partner_path(partner_id),
            Some(&json!({ "suspended": suspended })),
        )
        .await
}

fn terms_body(terms: &TermsArgs) -> Value {
    let allowlist = (!terms.allow.is_empty()).then(|| json!(terms.allow));
    let limits = (!terms.limits.is_empty()).then(|| limits_body(&terms.limits));
    let fields = [
        ("allowlist", &allowlist),
        ("limits", &limits),
        ("cancel_window_s", &terms.cancel_window),
        ("certified_at", &terms.certified_at),
        ("agreement_signed_at", &terms.agreement_signed_at),
        ("approval_rule", &terms.approval_rule),
        ("catalogue", &terms.catalogue),
    ];
    let present = fields
        .into_iter()
        .filter_map(|(name, value)| Some((name.to_owned(), value.clone()?)));
    Value::Object(present.collect())
}

fn limits_body(limits: &[ClassLimit]) -> Value {
    let limits = limits
        .iter()
        .map(|ClassLimit { class, limit }| (class.as_str().to_owned(), json!(limit)));
    Value::Object(limits.collect())
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
    let known = RequestClass::ALL
        .into_iter()
        .find(|known| known.as_str() == class);
    let class = known.ok_or_else(|| {
        format!(
            "the classes are {}",
            RequestClass::ALL.map(RequestClass::as_str).join(", ")
        )
    })?;
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
        let read = ["orders=500/60", "general=default"].map(|text| read_limit(text).unwrap());
        assert_eq!(
            limits_body(&read),
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
