//! Names of audited actions. They are stored, and readers of the audit trail filter by them, so a name never
//! changes.

use strum::IntoStaticStr;

/// An action that the audit log records.
///
/// Nodes drop what they hold of an object when an action with the prefix `partner.`, `credential.` or
/// `product.` names it: a name without its prefix would keep a revoked credential alive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, IntoStaticStr)]
#[cfg_attr(test, derive(strum::VariantArray))]
#[strum(const_into_str)]
pub enum AuditAction {
    #[strum(serialize = "partner.create")]
    CreatePartner,
    #[strum(serialize = "partner.change")]
    ChangePartner,
    /// A row whose HMAC does not match: all nodes hear of the partner by the entry, and suspend it.
    #[strum(serialize = "partner.reject_row")]
    RejectPartnerRow,
    #[strum(serialize = "credential.issue")]
    IssueCredential,
    #[strum(serialize = "credential.revoke")]
    RevokeCredential,
    #[strum(serialize = "credential.rotate")]
    RotateCredential,
    #[strum(serialize = "product.put")]
    PutProduct,
    #[strum(serialize = "category.put")]
    PutCategory,
    #[strum(serialize = "vendor.put")]
    PutVendor,
    #[strum(serialize = "certification.restart")]
    RestartCertification,
    #[strum(serialize = "order.approve")]
    ApproveOrder,
    #[strum(serialize = "order.reject")]
    RejectOrder,
    #[strum(serialize = "order.cancel")]
    CancelOrder,
    #[strum(serialize = "order.fulfil")]
    FulfilOrder,
    #[strum(serialize = "order.erase")]
    EraseOrder,
    #[strum(serialize = "payout.pay")]
    PayPayout,
    #[strum(serialize = "payout.reject")]
    RejectPayout,
    #[strum(serialize = "payout.fail")]
    FailPayout,
    #[strum(serialize = "payout.cancel")]
    CancelPayout,
    #[strum(serialize = "payout.read")]
    ReadPayout,
    #[strum(serialize = "payout.erase")]
    ErasePayout,
    /// Personal data of the partner's orders and payouts. The name is no `partner.`: what nodes hold of the
    /// partner stays as it is.
    #[strum(serialize = "personal_data.erase")]
    ErasePersonalData,
    #[strum(serialize = "purchase.end")]
    EndPurchase,
    #[strum(serialize = "stock.import")]
    ImportStock,
    #[strum(serialize = "stock.void")]
    VoidStock,
    #[strum(serialize = "stock.expire")]
    ExpireStock,
    #[strum(serialize = "stock.quarantine")]
    QuarantineStock,
    #[strum(serialize = "stock.compare")]
    CompareStock,
    #[strum(serialize = "stock.release")]
    ReleaseStock,
    #[strum(serialize = "webhook.create")]
    CreateWebhook,
    #[strum(serialize = "webhook.change")]
    ChangeWebhook,
    #[strum(serialize = "webhook.remove")]
    RemoveWebhook,
    #[strum(serialize = "webhook.rotate")]
    RotateWebhookSecret,
    #[strum(serialize = "webhook.enable")]
    EnableWebhook,
    #[strum(serialize = "webhook.retry")]
    RetryWebhook,
    #[strum(serialize = "webhook.replay")]
    ReplayEvents,
    #[strum(serialize = "request.create")]
    RequestChange,
    #[strum(serialize = "request.confirm")]
    ConfirmChange,
    #[strum(serialize = "request.decline")]
    DeclineChange,
    #[strum(serialize = "bulk_job.start")]
    StartBulkJob,
    #[strum(serialize = "reconciliation.run")]
    RunReconciliation,
    #[strum(serialize = "reconciliation.upload")]
    UploadVendorRecords,
    #[strum(serialize = "drift.resolve")]
    ResolveDrift,
    #[strum(serialize = "code.reencrypt")]
    ReencryptCodes,
    #[strum(serialize = "data_key.create")]
    CreateDataKey,
    #[strum(serialize = "data_key.rewrap")]
    RewrapDataKeys,
    #[strum(serialize = "operator.create")]
    CreateOperator,
    #[strum(serialize = "operator.change")]
    ChangeOperator,
    #[strum(serialize = "operator_token.issue")]
    IssueToken,
    #[strum(serialize = "operator_token.activate")]
    ActivateToken,
    #[strum(serialize = "operator_token.revoke")]
    RevokeToken,
    #[strum(serialize = "operator_session.start")]
    StartSession,
    #[strum(serialize = "operator_session.end")]
    EndSession,
    #[strum(serialize = "operator_sign_in_link.issue")]
    IssueSignInLink,
    #[strum(serialize = "operator_identity.link")]
    LinkIdentity,
    #[strum(serialize = "operator_identity.unlink")]
    UnlinkIdentity,
    #[strum(serialize = "security.foreign_address")]
    ForeignAddress,
    #[strum(serialize = "security.forged_grant")]
    ForgedGrant,
    /// Rejected requests of one kind and origin within an interval, as all `security.*` but `ForgedGrant`.
    #[strum(serialize = "security.operator_token")]
    FailedToken,
    #[strum(serialize = "security.operator_session")]
    FailedSession,
    #[strum(serialize = "security.operator_sign_in")]
    FailedSignIn,
    #[strum(serialize = "security.metrics_token")]
    FailedMetricsToken,
    /// Written by `vouchsafe archive` once rows of a log are gone from the database.
    #[strum(serialize = "archive.remove")]
    RemoveArchived,
    #[strum(serialize = "audit_checkpoint.write")]
    WriteCheckpoints,
    /// Written by `retrieve_codes_v1`.
    #[strum(serialize = "codes.retrieve")]
    RetrieveCodes,
    /// Written by `commit_batch_v2`.
    #[strum(serialize = "wallet.top_up")]
    TopUpWallet,
    /// Written by `commit_batch_v2`.
    #[strum(serialize = "wallet.adjust")]
    AdjustWallet,
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use strum::VariantArray as _;

    use super::*;

    #[test]
    fn changes_of_cached_objects_have_their_prefix_and_names_are_distinct() {
        use AuditAction::{
            ChangePartner, CreatePartner, IssueCredential, PutProduct, RejectPartnerRow, RevokeCredential,
            RotateCredential,
        };
        let is_cached = |action: &AuditAction| {
            let prefixes = ["partner.", "credential.", "product."];
            prefixes
                .iter()
                .any(|prefix| action.into_str().starts_with(prefix))
        };
        let cached: Vec<_> = AuditAction::VARIANTS.iter().copied().filter(is_cached).collect();
        let expected = [
            CreatePartner,
            ChangePartner,
            RejectPartnerRow,
            IssueCredential,
            RevokeCredential,
            RotateCredential,
            PutProduct,
        ];
        assert_eq!(cached, expected);
        let names: BTreeSet<_> = AuditAction::VARIANTS
            .iter()
            .map(|action| action.into_str())
            .collect();
        assert_eq!(names.len(), AuditAction::VARIANTS.len());
    }
}
