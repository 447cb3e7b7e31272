//! Order requests of partners and the replies to them.

use std::sync::Arc;

use uuid::Uuid;
use vouchsafe_actors::flows::{FlowError, IdempotentResponse, OrderCaps, PlaceOrder, PlaceOrderError};
use vouchsafe_domain::approval::ApprovalRule;
use vouchsafe_domain::catalogue::{Assortment, Catalogue, RequestedLine, RequestedOrder};
use vouchsafe_domain::idempotency::{Fingerprint, KeyHash, Response};
use vouchsafe_domain::ids::{CredentialId, PartnerId};
use vouchsafe_domain::order::Fulfilment;
use vouchsafe_domain::partner::caps::PartnerCaps;

use crate::build;

/// A request for an order under an idempotency key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrderRequest {
    pub partner_id: PartnerId,
    pub key: String,
    /// Product, denomination and quantity per line.
    pub lines: Vec<(String, String, u32)>,
    pub fulfilment: Fulfilment,
    pub reference: Option<String>,
    pub approval_rule: Option<ApprovalRule>,
    pub caps: Option<PartnerCaps>,
}

impl OrderRequest {
    #[must_use]
    pub fn new(partner_id: PartnerId, key: &str, lines: &[(&str, &str, u32)]) -> Self {
        let own = |(product, denomination, quantity): &(&str, &str, u32)| {
            ((*product).to_owned(), (*denomination).to_owned(), *quantity)
        };
        Self {
            partner_id,
            key: key.to_owned(),
            lines: lines.iter().map(own).collect(),
            fulfilment: Fulfilment::Auto,
            reference: None,
            approval_rule: None,
            caps: None,
        }
    }

    /// Sets the partner's caps.
    #[must_use]
    pub fn with_caps(self, caps: PartnerCaps) -> Self {
        Self {
            caps: Some(caps),
            ..self
        }
    }

    /// Sets the partner's approval rule.
    #[must_use]
    pub fn with_approval_rule(self, rule: ApprovalRule) -> Self {
        Self {
            approval_rule: Some(rule),
            ..self
        }
    }

    /// Restricts fulfilment to stock.
    #[must_use]
    pub fn cache_only(self) -> Self {
        Self {
            fulfilment: Fulfilment::CacheOnly,
            ..self
        }
    }

    /// Sets the reference, which changes the request body.
    #[must_use]
    pub fn with_reference(self, reference: &str) -> Self {
        Self {
            reference: Some(reference.to_owned()),
            ..self
        }
    }

    #[must_use]
    pub fn key_hash(&self) -> KeyHash {
        build::key(&format!("{}/{}", self.partner_id, self.key))
    }

    #[must_use]
    pub fn fingerprint(&self) -> Fingerprint {
        build::fingerprint(&format!("{self:?}"))
    }

    /// The command for the order flow.
    #[must_use]
    pub fn command(&self, catalogue: Arc<Catalogue>) -> PlaceOrder {
        let line = |(product_id, denomination, quantity): &(String, String, u32)| RequestedLine {
            product_id: product_id.clone(),
            denomination: denomination.as_str().into(),
            quantity: *quantity,
        };
        PlaceOrder {
            partner_id: self.partner_id,
            key: self.key_hash(),
            fingerprint: self.fingerprint(),
            request: RequestedOrder {
                lines: self.lines.iter().map(line).collect(),
                currency: None,
                fulfilment: self.fulfilment,
                reference: self.reference.clone(),
                metadata: None,
            },
            assortment: Assortment::new(catalogue, None),
            approval_rule: self.approval_rule.clone().map(Arc::new),
            caps: self.caps.clone().map(|caps| OrderCaps {
                caps: Arc::new(caps),
                family_id: CredentialId::from_uuid(Uuid::nil()),
            }),
            origin: None,
        }
    }
}

/// Reply to an [`OrderRequest`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OrderReply {
    /// A response from this execution.
    New(Response),
    /// A stored response.
    Replayed(Response),
    /// An error that is not stored.
    Rejected(PlaceOrderError),
    /// The partner disconnected or the node crashed.
    Disconnected,
}

impl From<Result<IdempotentResponse, PlaceOrderError>> for OrderReply {
    fn from(placed: Result<IdempotentResponse, PlaceOrderError>) -> Self {
        match placed {
            Ok(IdempotentResponse::Fresh(response)) => Self::New(response),
            Ok(IdempotentResponse::Replayed(response)) => Self::Replayed(response),
            Err(reason) => Self::Rejected(reason),
        }
    }
}

impl OrderReply {
    /// The response, new or replayed.
    #[must_use]
    pub const fn response(&self) -> Option<&Response> {
        match self {
            Self::New(response) | Self::Replayed(response) => Some(response),
            Self::Rejected(_) | Self::Disconnected => None,
        }
    }

    /// Body of a new response.
    ///
    /// # Panics
    /// If the reply is anything else.
    pub fn expect_new(&self) -> &str {
        match self {
            Self::New(response) => std::str::from_utf8(&response.body).unwrap(),
            other => panic!("expected a new response, got {}", other.describe()),
        }
    }

    /// Body of a replayed response.
    ///
    /// # Panics
    /// If the reply is anything else.
    pub fn expect_replay(&self) -> &str {
        match self {
            Self::Replayed(response) => std::str::from_utf8(&response.body).unwrap(),
            other => panic!("expected a replay, got {}", other.describe()),
        }
    }

    /// Whether the order was rejected because it has no price.
    #[must_use]
    pub const fn is_unpriced(&self) -> bool {
        matches!(self, Self::Rejected(PlaceOrderError::Pricing(_)))
    }

    /// The error, unless it is about prices.
    #[must_use]
    pub const fn error(&self) -> Option<&FlowError> {
        match self {
            Self::Rejected(PlaceOrderError::Flow(reason)) => Some(reason),
            _ => None,
        }
    }

    /// Reply and body as text, for messages of failed tests.
    #[must_use]
    pub fn describe(&self) -> String {
        let text = self
            .response()
            .map(|response| String::from_utf8_lossy(&response.body));
        format!("{self:?} {}", text.unwrap_or_default())
    }
}
