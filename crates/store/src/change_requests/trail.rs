//! Audit entries of change requests.

use sqlx::PgConnection;
use vouchsafe_audit_log::{self as audit, AuditActor};
use vouchsafe_domain::audit_action::AuditAction;
use vouchsafe_domain::change_request::ChangeRequest;
use vouchsafe_domain::ids::{ChangeRequestId, PartnerId};

/// The partner of a request, which its first audit entry has.
pub(super) async fn find_partner(
    connection: &mut PgConnection,
    request_id: ChangeRequestId,
) -> Result<Option<PartnerId>, sqlx::Error> {
    let partner_id = sqlx::query_scalar!(
        r#"SELECT partner_id AS "partner_id: PartnerId"
             FROM audit_log
            WHERE subject = $1 AND action = 'request.create'"#,
        request_id.to_string(),
    );
    Ok(partner_id.fetch_optional(connection).await?.flatten())
}

/// Writes the audit entry of a change of a request.
pub(super) async fn audit_change(
    connection: &mut PgConnection,
    actor: &AuditActor,
    partner_id: Option<PartnerId>,
    action: AuditAction,
    before: Option<&ChangeRequest>,
    after: &ChangeRequest,
) -> Result<(), sqlx::Error> {
    audit::write_of_partner(
        connection,
        actor,
        partner_id,
        action,
        &after.request_id,
        before,
        Some(after),
    )
    .await
}
