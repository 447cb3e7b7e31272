//! `vouchsafe partner`: taking partners in, and changing their terms.

use std::convert::Infallible;

use clap::{Args, Subcommand};
use reqwest::Method;
use serde_json::{Value, json};

use super::admin::{Admin, AdminOptions, NO_BODY, PageOptions, escaped};
use super::examples::examples;
use super::show::{self, Column};
use super::{Outcome, id};
use crate::access::limits::{Class, InvalidLimit, Limit};

const COLUMNS: [Column; 5] = [
    ("PARTNER", "partner_id"),
    ("NAME", "name"),
    ("SUSPENDED", "suspended"),
    ("ALLOWLIST", "allowlist"),
    ("CREATED", "created_at"),
];

const CHECKLIST: [Column; 5] = [
    ("POINT", "point"),
    ("STATE", "state"),
    ("WHEN", "at"),
    ("WHY", "why"),
    ("WHAT TO DO", "advice"),
];

/// Arguments of `vouchsafe partner`.
#[derive(Debug, Args)]
#[command(after_help = examples!["vouchsafe partner list"])]
pub struct PartnerArgs {
    #[command(flatten)]
    pub(super) options: AdminOptions,
    #[command(subcommand)]
    pub(super) action: Action,
}

/// What can be done to partners.
#[derive(Debug, Subcommand)]
pub(super) enum Action {
    /// Take a partner in. Its first secret is shown once.
    #[command(after_help = examples![
        "vouchsafe partner create --name 'Example Ltd' --allow 203.0.113.0/24",
        "vouchsafe partner create --name 'Example Ltd' --allow 203.0.113.7 --limit orders=500/60 --json",
    ])]
    Create {
        /// What it is called.
        #[arg(long)]
        name: String,
        /// A network or an address that it calls from. May be repeated; none admits nobody.
        #[arg(long = "allow", value_name = "CIDR")]
        allow: Vec<String>,
        /// A limit of its own, e.g. orders=500/60 (per 60 seconds). May be repeated.
        #[arg(long = "limit", value_name = "CLASS=QUOTA/SECONDS", value_parser = read_limit)]
        limits: Vec<ClassLimit>,
    },
    /// List the partners, newest first.
    #[command(after_help = examples!["vouchsafe partner list --limit 20"])]
    List(PageOptions),
    /// Show a partner with its credentials.
    #[command(after_help = examples!["vouchsafe partner show PARTNER_ID"])]
    Show {
        /// Its id.
        #[arg(value_parser = id::partner)]
        partner_id: String,
    },
    /// Change terms; in force at once.
    Set(Box<SetArgs>),
    /// Show the checklist that the sandbox keeps of a partner's client.
    #[command(after_help = examples![
        "vouchsafe partner certification PARTNER_ID --json > certification.json",
        "vouchsafe partner certification PARTNER_ID --start-over",
    ])]
    Certification {
        /// Its id.
        #[arg(value_parser = id::partner)]
        partner_id: String,
        /// Forget what was seen: every point is open again.
        #[arg(long)]
        start_over: bool,
    },
    /// Stop a partner: its calls are refused from now on.
    #[command(after_help = examples!["vouchsafe partner suspend PARTNER_ID"])]
    Suspend {
        /// Its id.
        #[arg(value_parser = id::partner)]
        partner_id: String,
    },
    /// Let a partner call again.
    #[command(after_help = examples!["vouchsafe partner resume PARTNER_ID"])]
    Resume {
        /// Its id.
        #[arg(value_parser = id::partner)]
        partner_id: String,
    },
}

/// Whose terms to change.
#[derive(Debug, Args)]
#[command(after_help = examples![
    "vouchsafe partner set PARTNER_ID --limit orders=500/60 --limit general=default",
    r#"vouchsafe partner set PARTNER_ID --approval-rule '{"amount_over":{"USD":500}}' --cancel-window 3600"#,
])]
pub(super) struct SetArgs {
    /// Its id.
    #[arg(value_parser = id::partner)]
    partner_id: String,
    #[command(flatten)]
    terms: Terms,
}

/// Terms to change, one at least; what is not named stays.
#[derive(Debug, Args)]
#[group(required = true, multiple = true)]
struct Terms {
    /// Replaces the allowlist. May be repeated.
    #[arg(long = "allow", value_name = "CIDR")]
    allow: Vec<String>,
    /// A limit of its own, or `orders=default`. May be repeated.
    #[arg(long = "limit", value_name = "CLASS=QUOTA/SECONDS", value_parser = read_limit)]
    limits: Vec<ClassLimit>,
    /// For how many seconds orders can be cancelled, or `default`.
    #[arg(long, value_name = "SECONDS", value_parser = read_window)]
    cancel_window: Option<Value>,
    /// When it passed the certification, e.g. 2026-11-20T12:00:00Z, or `none`.
    #[arg(long, value_name = "TIME", value_parser = read_moment)]
    certified_at: Option<Value>,
    /// When it signed the agreement, or `none`.
    #[arg(long, value_name = "TIME", value_parser = read_moment)]
    agreement_signed_at: Option<Value>,
    /// When its orders wait for an operator, as JSON, or `none`.
    #[arg(long, value_name = "JSON", value_parser = read_terms)]
    approval_rule: Option<Value>,
    /// What it may order, as JSON {"categories":[…],"products":[…]}, or `none` for everything.
    #[arg(long, value_name = "JSON", value_parser = read_terms)]
    catalogue: Option<Value>,
}

/// Runs `vouchsafe partner`.
pub(super) async fn run(action: Action, admin: &Admin) -> anyhow::Result<Outcome> {
    match action {
        Action::Create { name, allow, limits } => {
            let body = json!({ "name": name, "allowlist": allow, "limits": by_class(&limits) });
            admin.change(Method::POST, "/partners", Some(&body)).await
        }
        Action::List(page) => admin.list("/partners", &page.query(), &COLUMNS).await,
        Action::Show { partner_id } => admin.object(&path_of(&partner_id)).await,
        Action::Set(args) => {
            let body = patch(&args.terms);
            admin
                .change(Method::PATCH, &path_of(&args.partner_id), Some(&body))
                .await
        }
        Action::Certification {
            partner_id,
            start_over,
        } => {
            let path = format!("{}/certification", path_of(&partner_id));
            if start_over {
                admin.change(Method::DELETE, &path, NO_BODY).await
            } else {
                let answer = admin.call(Method::GET, &path, NO_BODY).await?;
                admin.show(answer, |answer| show::table_of(answer, "points", &CHECKLIST))
            }
        }
        Action::Suspend { partner_id } => suspend(admin, &partner_id, true).await,
        Action::Resume { partner_id } => suspend(admin, &partner_id, false).await,
    }
}

/// The path of a partner.
pub(super) fn path_of(partner_id: &str) -> String {
    format!("/partners/{}", escaped(partner_id))
}

async fn suspend(admin: &Admin, partner_id: &str, suspended: bool) -> anyhow::Result<Outcome> {
    admin
        .change(
            Method::PATCH,
            &path_of(partner_id),
            Some(&json!({ "suspended": suspended })),
        )
        .await
}

fn patch(terms: &Terms) -> Value {
    let allowlist = (!terms.allow.is_empty()).then(|| json!(terms.allow));
    let limits = (!terms.limits.is_empty()).then(|| by_class(&terms.limits));
    let given = [
        ("allowlist", &allowlist),
        ("limits", &limits),
        ("cancel_window_s", &terms.cancel_window),
        ("certified_at", &terms.certified_at),
        ("agreement_signed_at", &terms.agreement_signed_at),
        ("approval_rule", &terms.approval_rule),
        ("catalogue", &terms.catalogue),
    ];
    let named = given
        .into_iter()
        .filter_map(|(name, value)| Some((name.to_owned(), value.clone()?)));
    Value::Object(named.collect())
}

fn by_class(limits: &[ClassLimit]) -> Value {
    let limits = limits
        .iter()
        .map(|ClassLimit { class, limit }| (class.as_str().to_owned(), json!(limit)));
    Value::Object(limits.collect())
}

/// A limit of one class; none is the service's own.
#[derive(Debug, Clone, Copy)]
pub(super) struct ClassLimit {
    class: Class,
    limit: Option<Limit>,
}

/// `orders=100/60` and `orders=default`.
fn read_limit(text: &str) -> Result<ClassLimit, String> {
    let (class, limit) = text
        .split_once('=')
        .ok_or("expected CLASS=QUOTA/SECONDS or CLASS=default")?;
    let known = Class::ALL.into_iter().find(|known| known.as_str() == class);
    let class =
        known.ok_or_else(|| format!("the classes are {}", Class::ALL.map(Class::as_str).join(", ")))?;
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

/// What a moment is, the service says.
fn read_moment(text: &str) -> Result<Value, Infallible> {
    Ok(match text {
        "none" => Value::Null,
        moment => json!(moment),
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
    fn limits_are_read_by_class() {
        let read = ["orders=500/60", "general=default"].map(|text| read_limit(text).unwrap());
        assert_eq!(
            by_class(&read),
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
