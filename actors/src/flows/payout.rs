//! A payout: the money leaves the wallet when it is accepted; an operator pays it, or the money comes back.
//!
//! | step | in memory | on disk |
//! |---|---|---|
//! | take the key; set the money aside | key, admission, hold | nothing |
//! | the lane commits | the wallet knows its balance | payout, ledger entry, answer under its key |
//! | an operator decides | hold, where money comes back | the payout's end, and its reversal |
//!
//! Rule: a payout is decided once; the commit finds it pending, or writes nothing.

use super::change::{self, Attempted, Step};
use super::keyed::{self, Decided, Unanswered};
use crate::domain::answer::{Answer, Fingerprint, Keep, KeyHash};
use crate::domain::deed::Deed;
use crate::domain::ids::{PartnerId, PayoutId, TransactionId};
use crate::domain::ledger::{BookedBy, LedgerKind, Movement, PendingShift};
use crate::domain::money::{Amount, Money};
use crate::domain::order::Actor;
use crate::domain::payout::{Destination, Payout, PayoutDecision, PayoutMilestone, PayoutStatus};
use crate::engine::Engine;
use crate::flows::place_order::Placed;
use crate::journal::{Hold, KeyClaim, PayoutChange, Record};
use crate::supervisor::Patience;
use crate::wallet::Funds;
use crate::wallet::purse::Wish;

/// A partner's wish for a payout.
#[derive(Debug, Clone)]
pub struct RequestPayout {
    pub partner_id: PartnerId,
    pub key: KeyHash,
    /// The request that the key belongs to.
    pub fingerprint: Fingerprint,
    pub money: Money,
    pub destination: Destination,
    /// The partner's own reference.
    pub reference: Option<String>,
}

/// How answers are worded; the engine keeps their bytes and does not read them.
pub trait PayoutWording {
    /// The answer to a payout that was accepted.
    fn accepted(&self, payout: &Payout) -> Answer;

    /// The answer where the wallet holds less.
    fn short(&self, needed: Money, available: Amount) -> Answer;
}

/// Takes the money, or gives the answer that the key was given before.
///
/// # Errors
/// [`Unanswered`].
pub async fn request_payout(
    engine: &Engine,
    command: RequestPayout,
    wording: &dyn PayoutWording,
) -> Result<Placed, Unanswered> {
    let decide = async |attempt: &keyed::Attempt| {
        let Money { amount, currency } = command.money;
        let asked = engine.wallets.set_aside(
            command.partner_id,
            currency,
            Wish::Take(amount),
            &attempt.patience,
        );
        Ok::<_, Unanswered>(match asked.await? {
            Funds::Held(hold) => Decided {
                record: requested(&command, engine.clock.now(), wording),
                holds: vec![Box::new(hold)],
                refuses: false,
            },
            Funds::Refused(available) => Decided {
                record: kept(&command, wording.short(command.money, available)),
                holds: Vec::new(),
                refuses: true,
            },
        })
    };
    let given = keyed::answer(engine, command.key, command.fingerprint, decide).await?;
    Ok(if given.replayed {
        Placed::Replayed(given.answer)
    } else {
        Placed::Fresh(given.answer)
    })
}

fn requested(command: &RequestPayout, at: time::OffsetDateTime, wording: &dyn PayoutWording) -> Record {
    let payout = Payout {
        payout_id: PayoutId::generate(),
        partner_id: command.partner_id,
        status: PayoutStatus::Pending,
        money: command.money,
        destination: command.destination.clone(),
        reference: command.reference.clone(),
        timeline: vec![PayoutMilestone {
            status: PayoutStatus::Pending,
            at,
            by: Actor::Partner,
            reason: None,
            reference: None,
        }],
        created_at: at,
        updated_at: at,
    };
    Record {
        movement: Some(movement(&payout, LedgerKind::Payout)),
        pending: Some(shift(&payout, payout.money.amount)),
        payout: Some(PayoutChange::Requested(payout.clone())),
        ..kept(command, wording.accepted(&payout))
    }
}

fn kept(command: &RequestPayout, answer: Answer) -> Record {
    let claim = KeyClaim {
        key: command.key,
        fingerprint: command.fingerprint,
        answer,
        keep: Keep::Day,
    };
    Record::answering(command.partner_id, claim)
}

/// What an operator says of a payout.
#[derive(Debug, Clone)]
pub struct DecidePayout {
    pub partner_id: PartnerId,
    pub payout_id: PayoutId,
    /// What becomes of it.
    pub decision: PayoutDecision,
    pub by: BookedBy,
}

/// Why a payout was not decided.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PayoutNotDecided {
    /// This partner has no such payout.
    #[error("there is no such payout")]
    NotFound,
    /// It was decided before.
    #[error("the payout is {} already", .0.as_str())]
    Over(PayoutStatus),
    #[error(transparent)]
    Unanswered(#[from] Unanswered),
}

/// Notes that a payout was paid, or gives its money back.
///
/// # Errors
/// [`PayoutNotDecided`]; then nothing was written, or it says that this is not known yet.
pub async fn decide_payout(engine: &Engine, command: DecidePayout) -> Result<Payout, PayoutNotDecided> {
    let patience = Patience::begin();
    for _ in 0..change::MAX_DECISIONS {
        let stored = engine
            .store
            .load_payout(command.partner_id, command.payout_id)
            .await;
        let stored = stored.map_err(|error| change::unavailable(&error))?;
        let before = stored.ok_or(PayoutNotDecided::NotFound)?;
        if before.status != PayoutStatus::Pending {
            return Err(PayoutNotDecided::Over(before.status));
        }
        let payout = before
            .clone()
            .decided(command.decision.clone(), engine.clock.now());
        let deed = Deed::on_payout(&command.by, &command.decision, &before, &payout);
        if write(engine, payout.clone(), deed, &patience).await? == Attempted::Done {
            return Ok(payout);
        }
    }
    Err(Unanswered::Unavailable.into())
}

async fn write(
    engine: &Engine,
    payout: Payout,
    deed: Deed,
    patience: &Patience,
) -> Result<Attempted, Unanswered> {
    let mut holds: Vec<Box<dyn Hold>> = Vec::new();
    let mut reversal = None;
    if payout.status != PayoutStatus::Paid {
        let Money { amount, currency } = payout.money;
        let asked = engine
            .wallets
            .set_aside(payout.partner_id, currency, Wish::Add(amount), patience);
        match asked.await? {
            Funds::Held(hold) => holds.push(Box::new(hold)),
            Funds::Refused(_) => return Err(Unanswered::Poisoned),
        }
        reversal = Some(movement(&payout, LedgerKind::PayoutReversal));
    }
    let step = Step {
        partner_id: payout.partner_id,
        thing: payout.payout_id.as_uuid(),
        since: 0,
    };
    let fill = |record| Record {
        movement: reversal,
        pending: Some(shift(&payout, negative(payout.money.amount))),
        payout: Some(PayoutChange::Decided(payout)),
        deed: Some(deed),
        ..record
    };
    change::attempt(engine, step, fill, holds).await
}

fn movement(payout: &Payout, kind: LedgerKind) -> Movement {
    let amount = payout.money.amount;
    Movement {
        transaction_id: TransactionId::generate(),
        currency: payout.money.currency,
        kind,
        amount: if kind == LedgerKind::Payout {
            negative(amount)
        } else {
            amount
        },
        order_id: None,
        payout_id: Some(payout.payout_id),
        reference: payout.reference.clone(),
        booked_by: None,
    }
}

fn shift(payout: &Payout, payouts: Amount) -> PendingShift {
    PendingShift {
        currency: payout.money.currency,
        orders: Amount::ZERO,
        payouts,
    }
}

/// An amount that is more than nothing.
const fn negative(amount: Amount) -> Amount {
    Amount::from_minor(-amount.minor())
}
