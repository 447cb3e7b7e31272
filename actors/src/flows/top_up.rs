//! Adding money to a wallet, or correcting its balance, by an operator.
//!
//! | step | in memory | on disk |
//! |---|---|---|
//! | take the reference as the key | key, admission | nothing |
//! | set money aside, if any is taken; find room, if any is added | hold | nothing |
//! | the lane commits | the wallet knows its balance | ledger entry, balance, the entry's id under its reference |
//!
//! The reference is kept for ever: the same one never books twice.

use tracing::instrument;

use super::keyed::{self, Decided, Unanswered};
use crate::SPANS;
use crate::domain::answer::{Answer, Fingerprint, Keep, KeyHash};
use crate::domain::ids::{PartnerId, TransactionId};
use crate::domain::ledger::{BookedBy, LedgerKind, Movement};
use crate::domain::money::{Amount, Money};
use crate::engine::Engine;
use crate::journal::{KeyClaim, Record};
use crate::wallet::Funds;
use crate::wallet::purse::{MAX_BALANCE, Wish};

/// What an operator books.
#[derive(Debug, Clone)]
pub struct TopUp {
    pub partner_id: PartnerId,
    /// How much; an adjustment may be negative.
    pub money: Money,
    pub kind: LedgerKind,
    /// The operator's reference, which is booked once.
    pub reference: String,
    pub booked_by: BookedBy,
    /// The reference as a key.
    pub key: KeyHash,
    /// Partner, kind, amount and reference together.
    pub fingerprint: Fingerprint,
}

/// A ledger entry that is durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Booked {
    pub transaction_id: TransactionId,
    /// Whether it was booked before.
    pub replayed: bool,
}

/// Why nothing was booked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotBooked {
    /// The wallet holds less than would be taken. Holds the balance, in minor units.
    #[error("the wallet holds less than would be taken")]
    Short(Amount),
    /// The wallet would hold more than it may ([`MAX_BALANCE`]), or the amount is more than can be counted.
    #[error("a wallet holds at most {} minor units; book less, or take some out before", MAX_BALANCE.minor())]
    TooLarge,
    #[error(transparent)]
    Unanswered(#[from] Unanswered),
}

/// Books a top-up or an adjustment, or finds the one that its reference booked before.
///
/// # Errors
/// [`NotBooked`]; then nothing was written, or it says that this is not known yet.
#[instrument(target = SPANS, level = "debug", skip_all)]
pub async fn top_up(engine: &Engine, command: TopUp) -> Result<Booked, NotBooked> {
    let Money { amount, currency } = command.money;
    let wish = if amount < Amount::ZERO {
        Wish::Take(amount.checked_neg().ok_or(NotBooked::TooLarge)?)
    } else {
        Wish::Add(amount)
    };
    let decide = async |attempt: &keyed::Attempt| {
        let asked = engine
            .wallets
            .set_aside(command.partner_id, currency, wish, &attempt.patience);
        match (asked.await.map_err(Unanswered::from)?, wish) {
            (Funds::Held(hold), _) => Ok(Decided {
                record: record(&command),
                holds: vec![Box::new(hold)],
                refuses: false,
            }),
            (Funds::Refused(balance), Wish::Take(_)) => Err(NotBooked::Short(balance)),
            (Funds::Refused(_), Wish::Add(_)) => Err(NotBooked::TooLarge),
        }
    };
    let given = keyed::answer(engine, command.key, command.fingerprint, decide).await?;
    Ok(Booked {
        transaction_id: read(&given.answer)?,
        replayed: given.replayed,
    })
}

/// What is kept under the reference is the entry's id: its balance is known in the commit, and read from the ledger.
fn record(command: &TopUp) -> Record {
    let transaction_id = TransactionId::generate();
    let answer = Answer {
        status: 201,
        body: transaction_id.to_string().into(),
    };
    let claim = KeyClaim {
        key: command.key,
        fingerprint: command.fingerprint,
        answer,
        keep: Keep::Forever,
    };
    let movement = Movement {
        transaction_id,
        currency: command.money.currency,
        kind: command.kind,
        amount: command.money.amount,
        order_id: None,
        payout_id: None,
        reference: Some(command.reference.clone()),
        booked_by: Some(command.booked_by.clone()),
    };
    Record {
        movement: Some(movement),
        ..Record::answering(command.partner_id, claim)
    }
}

/// The id in the answer that is kept. One that cannot be read says that something was booked, and not what.
fn read(kept: &Answer) -> Result<TransactionId, Unanswered> {
    let text = std::str::from_utf8(&kept.body).ok();
    text.and_then(|text| text.parse().ok())
        .ok_or(Unanswered::OutcomeUnknown)
}
