//! What a partner asks of a node, and what it hears.

use std::sync::Arc;

use crate::domain::answer::{Answer, Fingerprint, KeyHash};
use crate::domain::approval::ApprovalRule;
use crate::domain::catalogue::{Assortment, Catalogue, RequestedLine, RequestedOrder};
use crate::domain::ids::PartnerId;
use crate::domain::order::Fulfilment;
use crate::flows::{NotPlaced, PlaceOrder, Placed, Unanswered};
use crate::testing::build;

/// An order under a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ask {
    pub partner_id: PartnerId,
    pub key: String,
    /// Product, denomination and quantity of each line.
    pub lines: Vec<(String, String, u32)>,
    /// What it may be fulfilled from.
    pub fulfilment: Fulfilment,
    /// The partner's own reference.
    pub reference: Option<String>,
    /// When its orders wait for an operator, and how many it placed before.
    pub approval: Option<(ApprovalRule, Option<u64>)>,
}

impl Ask {
    /// An order of these lines.
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
            approval: None,
        }
    }

    /// The same of a partner with this rule, who placed so many orders before.
    #[must_use]
    pub fn under(self, rule: ApprovalRule, earlier_orders: Option<u64>) -> Self {
        Self {
            approval: Some((rule, earlier_orders)),
            ..self
        }
    }

    /// The same from stock alone.
    #[must_use]
    pub fn cache_only(self) -> Self {
        Self {
            fulfilment: Fulfilment::CacheOnly,
            ..self
        }
    }

    /// The same with a reference: another body.
    #[must_use]
    pub fn reference(self, reference: &str) -> Self {
        Self {
            reference: Some(reference.to_owned()),
            ..self
        }
    }

    /// The key as the engine has it.
    #[must_use]
    pub fn key_hash(&self) -> KeyHash {
        build::key(&format!("{}/{}", self.partner_id, self.key))
    }

    /// The request as the engine tells it from others.
    #[must_use]
    pub fn fingerprint(&self) -> Fingerprint {
        build::fingerprint(&format!("{self:?}"))
    }

    /// The order as a flow takes it.
    #[must_use]
    pub fn command(&self, catalogue: Arc<Catalogue>) -> PlaceOrder {
        let line = |(product_id, denomination, quantity): &(String, String, u32)| RequestedLine {
            product_id: product_id.clone(),
            denomination: denomination.as_str().into(),
            quantity: *quantity,
        };
        let (rule, earlier_orders) = self.approval.clone().unzip();
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
            approval_rule: rule.map(Arc::new),
            earlier_orders: earlier_orders.flatten(),
        }
    }
}

/// What came of an [`Ask`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Heard {
    /// An answer, given for the first time.
    Fresh(Answer),
    /// An answer that was given before.
    Replayed(Answer),
    /// No answer that is kept.
    Nothing(NotPlaced),
    /// The partner hung up, or the node died.
    Gone,
}

impl From<Result<Placed, NotPlaced>> for Heard {
    fn from(placed: Result<Placed, NotPlaced>) -> Self {
        match placed {
            Ok(Placed::Fresh(answer)) => Self::Fresh(answer),
            Ok(Placed::Replayed(answer)) => Self::Replayed(answer),
            Err(reason) => Self::Nothing(reason),
        }
    }
}

impl Heard {
    /// The answer, fresh or replayed.
    #[must_use]
    pub const fn answer(&self) -> Option<&Answer> {
        match self {
            Self::Fresh(answer) | Self::Replayed(answer) => Some(answer),
            Self::Nothing(_) | Self::Gone => None,
        }
    }

    /// The text of a fresh answer.
    ///
    /// # Panics
    /// When it is something else.
    pub fn fresh(&self) -> &str {
        match self {
            Self::Fresh(answer) => std::str::from_utf8(&answer.body).unwrap(),
            other => panic!("expected a fresh answer, heard {}", other.in_words()),
        }
    }

    /// The text of a replayed answer.
    ///
    /// # Panics
    /// When it is something else.
    pub fn replayed(&self) -> &str {
        match self {
            Self::Replayed(answer) => std::str::from_utf8(&answer.body).unwrap(),
            other => panic!("expected a replay, heard {}", other.in_words()),
        }
    }

    /// Whether the order has no price.
    #[must_use]
    pub const fn is_unpriced(&self) -> bool {
        matches!(self, Self::Nothing(NotPlaced::Unpriced(_)))
    }

    /// The reason why nothing is kept, if it is not about prices.
    #[must_use]
    pub const fn unanswered(&self) -> Option<&Unanswered> {
        match self {
            Self::Nothing(NotPlaced::Unanswered(reason)) => Some(reason),
            _ => None,
        }
    }

    /// All of it, for whoever reads a failed test.
    #[must_use]
    pub fn in_words(&self) -> String {
        let text = self.answer().map(|answer| String::from_utf8_lossy(&answer.body));
        format!("{self:?} {}", text.unwrap_or_default())
    }
}
