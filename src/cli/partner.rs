//! `vouchsafe partner`: taking partners in, and changing their terms.

use anyhow::{Context as _, bail};
use clap::{Args, Subcommand};
use reqwest::Method;
use serde_json::{Map, Value, json};

use super::Outcome;
use super::admin::{Admin, AdminOptions, PageOptions, escaped};
use super::show::Column;
use crate::access::limits::Limit;

const COLUMNS: [Column; 5] = [
    ("PARTNER", "partner_id"),
    ("NAME", "name"),
    ("SUSPENDED", "suspended"),
    ("ALLOWLIST", "allowlist"),
    ("CREATED", "created_at"),
];

/// Arguments of `vouchsafe partner`.
#[derive(Debug, Args)]
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
    Create {
        /// What it is called.
        #[arg(long)]
        name: String,
        /// A network or an address that it calls from. May be repeated; none admits nobody.
        #[arg(long = "allow", value_name = "CIDR")]
        allow: Vec<String>,
        /// A limit of its own, e.g. orders=500/60 (per 60 seconds). May be repeated.
        #[arg(long = "limit", value_name = "CLASS=QUOTA/SECONDS")]
        limits: Vec<String>,
    },
    /// List the partners, newest first.
    List(PageOptions),
    /// Show a partner with its credentials.
    Show {
        /// Its id.
        partner_id: String,
    },
    /// Change terms; in force at once.
    Set(Box<SetArgs>),
    /// Stop a partner: its calls are refused from now on.
    Suspend {
        /// Its id.
        partner_id: String,
    },
    /// Let a partner call again.
    Resume {
        /// Its id.
        partner_id: String,
    },
}

/// Terms to change; what is not named stays.
#[derive(Debug, Args)]
pub(super) struct SetArgs {
    /// Its id.
    partner_id: String,
    /// Replaces the allowlist. May be repeated.
    #[arg(long = "allow", value_name = "CIDR")]
    allow: Vec<String>,
    /// A limit of its own, or `orders=default`. May be repeated.
    #[arg(long = "limit", value_name = "CLASS=QUOTA/SECONDS")]
    limits: Vec<String>,
    /// For how many seconds orders can be cancelled, or `default`.
    #[arg(long, value_name = "SECONDS")]
    cancel_window: Option<String>,
    /// When it passed the certification, e.g. 2026-11-20T12:00:00Z, or `none`.
    #[arg(long, value_name = "TIME")]
    certified_at: Option<String>,
    /// When it signed the agreement, or `none`.
    #[arg(long, value_name = "TIME")]
    agreement_signed_at: Option<String>,
    /// When its orders wait for an operator, as JSON, or `none`.
    #[arg(long, value_name = "JSON")]
    approval_rule: Option<String>,
    /// What it may order, as JSON {"categories":[…],"products":[…]}, or `none` for everything.
    #[arg(long, value_name = "JSON")]
    catalogue: Option<String>,
}

/// Runs `vouchsafe partner`.
pub(super) async fn run(action: Action, admin: &Admin) -> anyhow::Result<Outcome> {
    match action {
        Action::Create { name, allow, limits } => {
            let body = json!({ "name": name, "allowlist": allow, "limits": read_limits(&limits)? });
            admin.change(Method::POST, "/partners", Some(&body)).await
        }
        Action::List(page) => admin.list("/partners", &page.query(), &COLUMNS).await,
        Action::Show { partner_id } => admin.object(&path_of(&partner_id)).await,
        Action::Set(args) => {
            admin
                .change(Method::PATCH, &path_of(&args.partner_id), Some(&patch(&args)?))
                .await
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

fn patch(args: &SetArgs) -> anyhow::Result<Value> {
    let mut patch = Map::new();
    let mut set = |name: &str, value: Value| patch.insert(name.to_owned(), value);
    if !args.allow.is_empty() {
        set("allowlist", json!(args.allow));
    }
    if !args.limits.is_empty() {
        set("limits", read_limits(&args.limits)?);
    }
    match args.cancel_window.as_deref() {
        Some("default") => drop(set("cancel_window_s", Value::Null)),
        Some(text) => drop(set(
            "cancel_window_s",
            json!(text.parse::<u32>().context("--cancel-window: seconds")?),
        )),
        None => {}
    }
    for (name, moment) in [
        ("certified_at", &args.certified_at),
        ("agreement_signed_at", &args.agreement_signed_at),
    ] {
        if let Some(text) = moment {
            set(name, if text == "none" { Value::Null } else { json!(text) });
        }
    }
    for (name, terms) in [
        ("approval_rule", &args.approval_rule),
        ("catalogue", &args.catalogue),
    ] {
        if let Some(text) = terms {
            set(name, read_terms(name, text)?);
        }
    }
    if patch.is_empty() {
        bail!("nothing to change: name what shall be set, see --help");
    }
    Ok(Value::Object(patch))
}

fn read_terms(name: &str, text: &str) -> anyhow::Result<Value> {
    if text == "none" {
        return Ok(Value::Null);
    }
    serde_json::from_str(text).with_context(|| format!("--{}: expected JSON or none", name.replace('_', "-")))
}

/// `orders=100/60` and `orders=default`.
fn read_limits(texts: &[String]) -> anyhow::Result<Value> {
    let mut limits = Map::new();
    for text in texts {
        let wrong = || format!("--limit {text}: expected CLASS=QUOTA/SECONDS or CLASS=default");
        let (class, limit) = text.split_once('=').with_context(wrong)?;
        let limit = match limit {
            "default" => Value::Null,
            limit => json!(limit.parse::<Limit>().with_context(wrong)?),
        };
        limits.insert(class.to_owned(), limit);
    }
    Ok(Value::Object(limits))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(texts: &[&str]) -> anyhow::Result<Value> {
        read_limits(&texts.iter().map(ToString::to_string).collect::<Vec<_>>())
    }

    #[test]
    fn limits_are_read_by_class() {
        let read = limits(&["orders=500/60", "general=default"]).unwrap();
        assert_eq!(
            read,
            json!({ "orders": { "quota": 500, "window_s": 60 }, "general": null })
        );
        for text in ["orders", "orders=", "orders=5", "orders=5/x", "orders=-5/60"] {
            assert!(limits(&[text]).is_err(), "{text}");
        }
    }
}
