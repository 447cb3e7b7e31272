//! Adding money to a wallet, or correcting its balance, by an operator.
//!
//! | step | in memory | on disk |
//! |---|---|---|
//! | take the reference as the key | key, admission | nothing |
//! | set money aside, if any is taken | hold | nothing |
//! | the lane commits | the wallet knows its balance | ledger entry, balance, the entry's id under its reference |
//!
//! The reference is kept for ever: the same one never books twice.

use super::keyed::{self, Finished, Turn, Unanswered};
use crate::domain::answer::{Answer, Fingerprint, Keep, KeyHash};
use crate::domain::ids::{PartnerId, TransactionId};
use crate::domain::ledger::{BookedBy, LedgerKind, Movement};
use crate::domain::money::{Amount, Money};
use crate::engine::Engine;
use crate::journal::{Hold, KeyClaim, Record, Ticket};
use crate::supervisor::Patience;
use crate::wallet::Funds;

/// How often a booking is decided when its commit finds each time that the wallet has moved on.
const MAX_DECISIONS: u32 = 3;

/// What an operator books.
#[derive(Debug, Clone)]
pub struct TopUp {
    /// Into whose wallet.
    pub partner_id: PartnerId,
    /// How much; an adjustment may be negative.
    pub money: Money,
    /// [`LedgerKind::TopUp`] or [`LedgerKind::Adjustment`].
    pub kind: LedgerKind,
    /// The operator's reference, which is booked once.
    pub reference: String,
    /// Who says so.
    pub booked_by: BookedBy,
    /// The reference as a key.
    pub key: KeyHash,
    /// Partner, kind, amount and reference together.
    pub fingerprint: Fingerprint,
}

/// A ledger entry that is durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Booked {
    /// The entry.
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
    /// The amount cannot be negated.
    #[error("the amount is too large")]
    TooLarge,
    /// Something else.
    #[error(transparent)]
    Unanswered(#[from] Unanswered),
}

/// Books a top-up or an adjustment, or finds the one that its reference booked before.
///
/// # Errors
/// [`NotBooked`]; then nothing was written, or it says that this is not known yet.
pub async fn top_up(engine: &Engine, command: TopUp) -> Result<Booked, NotBooked> {
    let taken = if command.money.amount < Amount::ZERO {
        command.money.amount.checked_neg().ok_or(NotBooked::TooLarge)?
    } else {
        Amount::ZERO
    };
    let mut ticket = match keyed::begin(engine, command.key, command.fingerprint).await? {
        Turn::Answered(answer) => return booked(&answer, true),
        Turn::Run(ticket) => ticket,
    };
    let patience = Patience::begin();
    for _ in 0..MAX_DECISIONS {
        let asked = engine
            .wallets
            .set_aside(command.partner_id, command.money.currency, taken, &patience)
            .await;
        let hold = match asked {
            Ok(Funds::Held(hold)) => hold,
            refused => {
                let reason = match refused {
                    Ok(Funds::Short(balance)) => NotBooked::Short(balance),
                    _ => Unanswered::Unavailable.into(),
                };
                return unless_known(engine, ticket, command.fingerprint, reason).await;
            }
        };
        let holds: Vec<Box<dyn Hold>> = vec![Box::new(hold)];
        match keyed::finish(engine, record(&command), holds, ticket).await? {
            Finished::Committed(answer) => return booked(&answer, false),
            Finished::Replayed(answer) => return booked(&answer, true),
            Finished::Stale(same) => ticket = same,
        }
    }
    unless_known(
        engine,
        ticket,
        command.fingerprint,
        Unanswered::Unavailable.into(),
    )
    .await
}

/// Books nothing for `reason`, unless the reference was booked before.
async fn unless_known(
    engine: &Engine,
    ticket: Ticket,
    request: Fingerprint,
    reason: NotBooked,
) -> Result<Booked, NotBooked> {
    match keyed::look_up(engine, ticket, request).await? {
        Turn::Answered(answer) => booked(&answer, true),
        Turn::Run(_) => Err(reason),
    }
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
        pending_orders: Amount::ZERO,
        order_id: None,
        reference: Some(command.reference.clone()),
        booked_by: Some(command.booked_by.clone()),
    };
    Record {
        partner_id: command.partner_id,
        claim,
        order: None,
        movement: Some(movement),
        events: None,
    }
}

fn booked(kept: &Answer, replayed: bool) -> Result<Booked, NotBooked> {
    let transaction_id = std::str::from_utf8(&kept.body)
        .ok()
        .and_then(|text| text.parse().ok());
    let transaction_id = transaction_id.ok_or(Unanswered::Poisoned)?;
    Ok(Booked {
        transaction_id,
        replayed,
    })
}
