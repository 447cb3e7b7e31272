//! Partner accounts: name, allowlist, limits, approval rule, catalogue scope and certification.

pub mod approval_rule;
pub mod caps;

use serde::{Deserialize, Serialize};
use time::OffsetDateTime;

use self::approval_rule::ApprovalRule;
use self::caps::PartnerCaps;
use crate::allowlist::Allowlist;
use crate::comma_list::CommaList;
use crate::ids::{CredentialId, PartnerId};
use crate::limits::Limits;
use crate::scope::Scope;

/// Default cancellation window of a partner (contract §4). Seconds.
pub const DEFAULT_CANCEL_WINDOW_S: u32 = 86_400;

/// A partner, as operators and the audit log see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct Partner {
    /// Id of the partner.
    pub partner_id: PartnerId,
    /// Display name.
    pub name: String,
    /// Networks from which the partner may call.
    pub allowlist: Allowlist,
    /// Limits that override the service's settings.
    pub limits: Limits,
    /// Limits of all credentials together, by class; none by default. What its credentials may send together
    /// always passes.
    pub ceilings: Limits,
    /// Whether access is suspended. The codes of its orders stay readable.
    pub suspended: bool,
    /// Whether a suspension includes the codes of its orders.
    pub codes_blocked: bool,
    /// When orders need the approval of an operator; null means never.
    #[schema(required)]
    pub approval_rule: Option<ApprovalRule>,
    /// Caps that override those of the service's settings; null means those of the settings, an empty object
    /// means none.
    #[schema(required)]
    pub caps: Option<PartnerCaps>,
    /// Products that the partner may order; null means all.
    #[schema(required)]
    pub catalogue: Option<Scope>,
    /// How long the partner may cancel an order. Seconds.
    pub cancel_window_s: u32,
    /// Time of the sandbox certification.
    #[serde(with = "crate::timestamp::option")]
    #[schema(required)]
    pub certified_at: Option<OffsetDateTime>,
    /// Time of signing the agreement.
    #[serde(with = "crate::timestamp::option")]
    #[schema(required)]
    pub agreement_signed_at: Option<OffsetDateTime>,
    /// Time of creation.
    #[serde(with = "crate::timestamp")]
    pub created_at: OffsetDateTime,
    /// Time of the last change.
    #[serde(with = "crate::timestamp")]
    pub updated_at: OffsetDateTime,
}

/// Filter of partners; `None` matches any.
#[derive(Debug, Clone, Default, Serialize, Deserialize, utoipa::IntoParams, clap::Args)]
#[into_params(parameter_in = Query)]
pub struct PartnerFilter {
    /// Filter by a part of the name. ASCII letters match in either case.
    #[param(value_type = Option<crate::text_schema::FilterText>, inline, example = "example")]
    #[arg(long, value_name = "TEXT")]
    pub name: Option<String>,
    /// Filter by ID; several are separated by commas.
    #[param(value_type = Option<Vec<PartnerId>>, style = Form, explode = false, min_items = 1, inline)]
    #[arg(long = "partner", value_name = "PARTNER_ID[,PARTNER_ID]")]
    pub partner_id: Option<CommaList<PartnerId>>,
    /// Filter by a credential, also a revoked one.
    #[param(inline)]
    #[arg(long = "credential", value_name = "CREDENTIAL_ID")]
    pub credential_id: Option<CredentialId>,
}

impl Partner {
    /// Creates a partner with default terms and a new id.
    #[must_use]
    pub fn new(name: String, allowlist: Allowlist, now: OffsetDateTime) -> Self {
        Self {
            partner_id: PartnerId::generate(),
            name,
            allowlist,
            limits: Limits::default(),
            ceilings: Limits::default(),
            suspended: false,
            codes_blocked: false,
            approval_rule: None,
            caps: None,
            catalogue: None,
            cancel_window_s: DEFAULT_CANCEL_WINDOW_S,
            certified_at: None,
            agreement_signed_at: None,
            created_at: now,
            updated_at: now,
        }
    }

    /// Whether live credentials may be issued to the partner (spec part 5, rule 8).
    #[must_use]
    pub const fn is_certified(&self) -> bool {
        self.certified_at.is_some() && self.agreement_signed_at.is_some()
    }
}
