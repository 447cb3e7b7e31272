//! What authentication and authorization need of a partner.

use std::sync::Arc;

use vouchsafe_domain::allowlist::Allowlist;
use vouchsafe_domain::approval::ApprovalRule;
use vouchsafe_domain::ids::PartnerId;
use vouchsafe_domain::limits::{Limits, RequestClass};
use vouchsafe_domain::partner::Partner;
use vouchsafe_domain::partner::caps::PartnerCaps;
use vouchsafe_domain::scope::Scope;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartnerStatus {
    Active,
    /// Suspended by an operator. The codes that it has paid for stay readable unless the operator blocks
    /// those too.
    Suspended {
        codes_blocked: bool,
    },
}

impl PartnerStatus {
    /// Whether requests of this class are served.
    pub(super) const fn admits(self, class: RequestClass) -> bool {
        match self {
            Self::Active => true,
            Self::Suspended { codes_blocked } => !codes_blocked && matches!(class, RequestClass::Vouchers),
        }
    }
}

/// The data of a partner that authentication and authorization need.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartnerAccess {
    pub partner_id: PartnerId,
    /// Display name.
    pub name: String,
    pub allowlist: Allowlist,
    /// The products it may order; `None` allows all.
    pub scope: Option<Arc<Scope>>,
    pub status: PartnerStatus,
    /// The partner's own rate limits.
    pub limits: Limits,
    /// Rate limits of all its credentials together.
    pub ceilings: Limits,
    /// How long after acceptance an order may be cancelled. Seconds.
    pub cancel_window_s: u32,
    /// When an order needs an operator's approval; `None` is never.
    pub approval_rule: Option<Arc<ApprovalRule>>,
    /// The partner's own caps; `None` leaves them to the settings, and empty ones exempt the partner from
    /// all.
    pub caps: Option<Arc<PartnerCaps>>,
}

impl From<&Partner> for PartnerAccess {
    fn from(partner: &Partner) -> Self {
        Self {
            partner_id: partner.partner_id,
            name: partner.name.clone(),
            allowlist: partner.allowlist.clone(),
            scope: partner.catalogue.clone().map(Arc::new),
            status: if partner.suspended {
                PartnerStatus::Suspended {
                    codes_blocked: partner.codes_blocked,
                }
            } else {
                PartnerStatus::Active
            },
            limits: partner.limits,
            ceilings: partner.ceilings,
            cancel_window_s: partner.cancel_window_s,
            approval_rule: partner.approval_rule.as_ref().map(|rule| Arc::new(rule.into())),
            caps: partner.caps.clone().map(Arc::new),
        }
    }
}

impl PartnerAccess {
    /// The caps that apply to the partner; `None` without any.
    #[must_use]
    pub fn effective_caps(&self, defaults: Option<&Arc<PartnerCaps>>) -> Option<Arc<PartnerCaps>> {
        let caps = match (&self.caps, defaults) {
            (Some(own), Some(defaults)) => Some(Arc::new(own.or(defaults))),
            (own, defaults) => own.as_ref().or(defaults).cloned(),
        };
        caps.filter(|caps| !caps.is_empty())
    }
}
