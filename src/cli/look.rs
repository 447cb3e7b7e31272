//! `vouchsafe actors` and `vouchsafe audit`: what the service does, and what operators did.

use clap::Args;

use super::Outcome;
use super::admin::{Admin, AdminOptions, PageOptions, filters};
use super::examples::examples;
use super::show::Column;

const ACTOR_COLUMNS: [Column; 6] = [
    ("KIND", "kind"),
    ("KEY", "key"),
    ("MAILBOX", "mailbox_depth"),
    ("HANDLED", "handled"),
    ("RESTARTS", "restarts"),
    ("STATE", "state"),
];

const AUDIT_COLUMNS: [Column; 6] = [
    ("ENTRY", "audit_id"),
    ("AT", "at"),
    ("OPERATOR", "operator"),
    ("ACTION", "action"),
    ("SUBJECT", "subject"),
    ("AFTER", "after"),
];

/// Arguments of `vouchsafe actors`.
#[derive(Debug, Args)]
#[command(after_help = examples!["vouchsafe actors --kind inventory --limit 20"])]
pub struct ActorsArgs {
    #[command(flatten)]
    pub(super) options: AdminOptions,
    #[command(flatten)]
    pub(super) query: ActorsQuery,
}

/// Which actors.
#[derive(Debug, Args)]
pub(super) struct ActorsQuery {
    /// How many, 1 to 10000.
    #[arg(long, default_value_t = 100, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    limit: u32,
    /// Of one kind.
    #[arg(long, value_parser = ["wallet", "inventory", "procurement", "delivery"])]
    kind: Option<String>,
}

/// Arguments of `vouchsafe audit`.
#[derive(Debug, Args)]
#[command(after_help = examples![
    "vouchsafe audit --subject PARTNER_ID",
    "vouchsafe audit --action credential.issue --from 2026-11-01 --json",
])]
pub struct AuditArgs {
    #[command(flatten)]
    pub(super) options: AdminOptions,
    #[command(flatten)]
    pub(super) query: AuditQuery,
}

/// Which entries.
#[derive(Debug, Args)]
pub(super) struct AuditQuery {
    /// Of this operator.
    #[arg(long)]
    operator: Option<String>,
    /// What was done, e.g. partner.change.
    #[arg(long)]
    action: Option<String>,
    /// To what: an id.
    #[arg(long)]
    subject: Option<String>,
    /// From then on: a date or an RFC 3339 time.
    #[arg(long, value_name = "TIME")]
    from: Option<String>,
    /// Before then.
    #[arg(long, value_name = "TIME")]
    to: Option<String>,
    #[command(flatten)]
    page: PageOptions,
}

/// Runs `vouchsafe actors`.
pub(super) async fn actors(query: &ActorsQuery, admin: &Admin) -> anyhow::Result<Outcome> {
    let limit = ("limit", query.limit.to_string());
    let kind = query.kind.clone().map(|kind| ("kind", kind));
    let query: Vec<_> = std::iter::once(limit).chain(kind).collect();
    admin.list("/actors", &query, &ACTOR_COLUMNS).await
}

/// Runs `vouchsafe audit`.
pub(super) async fn audit(query: &AuditQuery, admin: &Admin) -> anyhow::Result<Outcome> {
    let mut pairs = query.page.query();
    pairs.extend(filters([
        ("operator", &query.operator),
        ("action", &query.action),
        ("subject", &query.subject),
        ("from", &query.from),
        ("to", &query.to),
    ]));
    admin.list("/audit", &pairs, &AUDIT_COLUMNS).await
}
