//! `vouchsafe actors` and `vouchsafe audit`: live actors and the audit trail.

use vouchsafe_domain::audit_log::AuditFilter;
use vouchsafe_wire::operator::actors::ActorsQuery;

use super::CommandOutput;
use super::admin::{AdminClient, ListArgs};
use super::output::Column;

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

pub(super) async fn actors(query: &ActorsQuery, admin: &AdminClient) -> anyhow::Result<CommandOutput> {
    admin.list("/actors", query, &ACTOR_COLUMNS).await
}

pub(super) async fn audit(
    query: &ListArgs<AuditFilter>,
    admin: &AdminClient,
) -> anyhow::Result<CommandOutput> {
    admin.list("/audit", query, &AUDIT_COLUMNS).await
}
