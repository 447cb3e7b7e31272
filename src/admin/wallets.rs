//! `/partners/{partner_id}/wallets/{currency}`: money that operators book.
//!
//! | step | on disk after it |
//! |---|---|
//! | the reference was booked before | nothing new: the entry of then is answered |
//! | otherwise the engine books it | the ledger entry under its reference, and what the trail says of it |
//!
//! Rule: a reference of one wallet is booked once, ever. The same one for something else is refused.

use actix_web::{HttpResponse, web};
use serde::Deserialize;
use utoipa::ToSchema;
use vouchsafe_actors::domain::answer::Fingerprint;
use vouchsafe_actors::domain::ids::PartnerId;
use vouchsafe_actors::domain::ledger::LedgerKind;
use vouchsafe_actors::domain::money::{Amount, AmountText, Currency, Money};
use vouchsafe_actors::flows::{NotBooked, TopUp, Unanswered};

use super::body::{Json, bounded};
use super::operator::{Operator, Role};
use super::partners;
use crate::access::idempotency::{Endpoint, fingerprint, scoped_hash};
use crate::errors::{ApiError, Code};
use crate::http::{TransactionBody, unanswered_error};
use crate::service::Service;
use crate::store::By;

/// Longest reference, in characters: as for an order.
const MAX_REFERENCE: usize = 128;

/// Most that one booking moves, in minor units: thousands of them can be added up.
const MAX_AMOUNT: i64 = 1_000_000_000_000_000;

/// Money to be booked.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct BookingRequest {
    /// How much; an adjustment below zero takes money away.
    amount: AmountText,
    /// The name of the booking: it is made once.
    #[schema(min_length = 1, max_length = 128)]
    reference: String,
}

/// `POST /partners/{partner_id}/wallets/{currency}/top-ups`.
pub(super) async fn top_up(
    service: web::Data<Service>,
    operator: Operator,
    wallet: web::Path<(String, String)>,
    Json(request): Json<BookingRequest>,
) -> Result<HttpResponse, ApiError> {
    let by = operator.may(Role::Operator)?;
    let command = command(&service, &wallet, &request, LedgerKind::TopUp, by)?;
    if command.money.amount < Amount::ZERO {
        return Err(ApiError::invalid(
            "amount",
            "expected more than zero; an adjustment takes money away",
        ));
    }
    book(&service, command).await
}

/// `POST /partners/{partner_id}/wallets/{currency}/adjustments`.
pub(super) async fn adjust(
    service: web::Data<Service>,
    operator: Operator,
    wallet: web::Path<(String, String)>,
    Json(request): Json<BookingRequest>,
) -> Result<HttpResponse, ApiError> {
    let by = operator.may(Role::Operator)?;
    let command = command(&service, &wallet, &request, LedgerKind::Adjustment, by)?;
    book(&service, command).await
}

fn command(
    service: &Service,
    (partner_id, currency): &(String, String),
    request: &BookingRequest,
    kind: LedgerKind,
    by: By,
) -> Result<TopUp, ApiError> {
    let partner_id = partners::parse_id(partner_id)?;
    service
        .register
        .partner(partner_id)
        .ok_or_else(partners::not_found)?;
    let currency: Currency =
        currency
            .parse()
            .map_err(|error: vouchsafe_actors::domain::money::InvalidMoney| {
                ApiError::invalid("currency", error.to_string())
            })?;
    let reference = bounded("reference", &request.reference, MAX_REFERENCE)?;
    let amount = request.amount.parse(currency);
    let amount = amount.map_err(|error| ApiError::invalid("amount", error.to_string()))?;
    if amount == Amount::ZERO || amount.minor().unsigned_abs() > MAX_AMOUNT.unsigned_abs() {
        return Err(ApiError::invalid(
            "amount",
            "expected something other than zero, and no more than can be counted",
        ));
    }
    Ok(booking(partner_id, amount.of(currency), kind, reference, by))
}

/// A booking under its reference. Each wallet and each kind counts its own references.
fn booking(partner_id: PartnerId, money: Money, kind: LedgerKind, reference: String, by: By) -> TopUp {
    let endpoint = match kind {
        LedgerKind::TopUp => Endpoint::TopUp,
        _ => Endpoint::Adjustment,
    };
    TopUp {
        partner_id,
        money,
        kind,
        key: scoped_hash(partner_id, endpoint, &format!("{}:{reference}", money.currency)),
        fingerprint: print_of(money, kind, &reference),
        reference,
        booked_by: by.into(),
    }
}

fn print_of(money: Money, kind: LedgerKind, reference: &str) -> Fingerprint {
    let amount = format!("{} {}", money.currency, money.amount.minor());
    fingerprint(kind.as_str(), &amount, reference.as_bytes())
}

async fn book(service: &Service, command: TopUp) -> Result<HttpResponse, ApiError> {
    let partner_id = command.partner_id;
    let booked = vouchsafe_actors::flows::top_up(&service.engine, command)
        .await
        .map_err(refused)?;
    let entry = service
        .store
        .find_transaction(partner_id, booked.transaction_id)
        .await?;
    let entry = entry.ok_or_else(|| {
        tracing::error!(transaction.id = %booked.transaction_id, "a booking is under its reference and not in the ledger");
        ApiError::new(Code::InternalError, "the booking cannot be found")
    })?;
    let mut answer = HttpResponse::Created();
    if booked.replayed {
        answer.insert_header(("Idempotent-Replayed", "true"));
    }
    Ok(answer.json(TransactionBody::from(entry)))
}

fn refused(error: NotBooked) -> ApiError {
    match error {
        NotBooked::Short(_) => ApiError::new(
            Code::InsufficientFunds,
            "the wallet holds less than would be taken",
        ),
        NotBooked::TooLarge => ApiError::invalid("amount", error.to_string()),
        NotBooked::Unanswered(Unanswered::KeyReused) => ApiError::new(
            Code::IdempotencyKeyReused,
            "this reference was booked with another amount; use a new reference for a new booking",
        ),
        NotBooked::Unanswered(Unanswered::KeyBusy | Unanswered::OutcomeUnknown) => ApiError::new(
            Code::IdempotencyInProgress,
            "a booking with this reference is under way; send the same request again",
        ),
        NotBooked::Unanswered(other) => unanswered_error(&other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(minor: i64, currency: &str, kind: LedgerKind, reference: &str) -> TopUp {
        let partner_id = PartnerId::from_uuid(uuid::Uuid::from_bytes([7; 16]));
        booking(
            partner_id,
            Amount::from_minor(minor).of(currency.parse().unwrap()),
            kind,
            reference.to_owned(),
            By::service(),
        )
    }

    #[test]
    fn a_reference_is_one_key_a_wallet_and_kind() {
        let first = of(100, "USD", LedgerKind::TopUp, "r1");
        assert_eq!(of(100, "USD", LedgerKind::TopUp, "r1").key, first.key);
        assert_eq!(
            of(999, "USD", LedgerKind::TopUp, "r1").key,
            first.key,
            "another amount finds the first"
        );
        assert_ne!(of(100, "EUR", LedgerKind::TopUp, "r1").key, first.key);
        assert_ne!(of(100, "USD", LedgerKind::Adjustment, "r1").key, first.key);
        assert_ne!(of(100, "USD", LedgerKind::TopUp, "r2").key, first.key);
    }

    #[test]
    fn the_fingerprint_tells_amounts_apart() {
        let first = of(100, "USD", LedgerKind::TopUp, "r1");
        assert_eq!(
            of(100, "USD", LedgerKind::TopUp, "r1").fingerprint,
            first.fingerprint
        );
        assert_ne!(
            of(-100, "USD", LedgerKind::TopUp, "r1").fingerprint,
            first.fingerprint
        );
        assert_ne!(
            of(1_000, "USD", LedgerKind::TopUp, "r1").fingerprint,
            first.fingerprint
        );
    }
}
