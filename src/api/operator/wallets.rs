//! Wallets of a partner: `/partners/{partner_id}/wallets` and `/transactions`, top-ups and adjustments by
//! operators.
//!
//! The reference of a posting is the idempotency key: a repeated request returns the original ledger entry;
//! the same reference with another amount is rejected. The ledger entry and its audit entry are written in
//! one commit.

use actix_web::{HttpResponse, web};
use serde::{Deserialize, Serialize};
use vouchsafe_actors::flows::{FlowError, TopUp, TopUpError};
use vouchsafe_domain::change_request::{ChangeKind, ChangePreview};
use vouchsafe_domain::idempotency::Fingerprint;
use vouchsafe_domain::ids::PartnerId;
use vouchsafe_domain::ledger::LedgerKind;
use vouchsafe_domain::ledger::transaction::TransactionFilter;
use vouchsafe_domain::money::{Amount, Currency, InvalidMoney, Money};
use vouchsafe_security::idempotency::{IdempotencyScope, scoped_hash};
use vouchsafe_security::vault::fingerprint::FingerprintKey;
use vouchsafe_store::AuditActor;
use vouchsafe_wire::error_code::Code;
use vouchsafe_wire::filter::WholeList;
use vouchsafe_wire::operator::wallets;
use vouchsafe_wire::operator::wallets::PostingRequest;

use super::body::Json;
use super::change::{
    Change, ChangeDescription, Execution, Safeguard, submit_with, to_description, to_preview,
};
use super::partner_id;
use crate::api::endpoint::Endpoint;
use crate::api::error::{ApiError, ApiResult, keyed_request_error};
use crate::api::ledger;
use crate::api::list_request::ListRequest;
use crate::api::middleware::operator::Operator;
use crate::api::operator::OperatorState;
use crate::api::operator::endpoint::bind;
use crate::api::operator::reports::Reports;
use crate::api::path_id::{Id, PathId as _};

pub(super) fn endpoints() -> [Endpoint; wallets::OPERATIONS.len()] {
    [
        bind(wallets::LIST_WALLETS, list),
        bind(wallets::LIST_TRANSACTIONS, list_transactions),
        bind(wallets::TOP_UP, |posting| {
            post(posting, LedgerKind::TopUp, ChangeKind::TopUp)
        }),
        bind(wallets::ADJUST, |posting| {
            post(posting, LedgerKind::Adjustment, ChangeKind::Adjustment)
        }),
    ]
}

/// A request for a list of a partner.
pub(super) type PartnerList<F> = (web::Data<OperatorState>, Operator, Id<PartnerId>, ListRequest<F>);

/// `GET /partners/{partner_id}/wallets`.
async fn list((service, _, partner_id, ListRequest { page, .. }): PartnerList<WholeList>) -> ApiResult {
    let partner_id = partner_id::find(&service, partner_id.parse()?).await?.partner_id;
    ledger::wallets(&service, partner_id, &page).await
}

/// `GET /partners/{partner_id}/transactions`.
async fn list_transactions(
    (service, _, partner_id, ListRequest { page, filter }): PartnerList<TransactionFilter>,
    reports: Reports,
) -> ApiResult {
    let partner_id = partner_id::find(&service, partner_id.parse()?).await?.partner_id;
    let (after, limit) = (page.after()?, page.limit());
    let found = reports.read(async |store| {
        store
            .transactions
            .list(partner_id, filter, after.clone(), limit)
            .await
    });
    ledger::transactions_response(&page, found.await?)
}

/// A posting to a wallet.
pub(super) type Posting = (
    web::Data<OperatorState>,
    Operator,
    web::Path<(String, String)>,
    Json<PostingRequest>,
);

/// `POST /partners/{partner_id}/wallets/{currency}/top-ups` and `/adjustments`.
async fn post(
    (service, operator, wallet, Json(request)): Posting,
    kind: LedgerKind,
    change: ChangeKind,
) -> ApiResult {
    let (partner_id, currency) = wallet.into_inner();
    let partner_id = partner_id.parse().map_err(|_| PartnerId::not_found())?;
    let partner_id = partner_id::find(&service, partner_id).await?.partner_id;
    let currency: Currency = currency
        .parse()
        .map_err(|error: InvalidMoney| ApiError::invalid_field("currency", error.to_string()))?;
    let (amount, _) = request.validate(currency, kind)?;
    let posting = WalletPosting {
        partner_id,
        currency,
        kind,
        request,
    };
    let safeguard = match service.four_eyes.applies_to_posting(amount, currency) {
        true => Safeguard::SecondOperator,
        false => Safeguard::StepUp,
    };
    submit_with(safeguard, &service, &operator, change, posting).await
}

/// A posting to a wallet of a partner.
#[derive(Serialize, Deserialize)]
pub(super) struct WalletPosting {
    partner_id: PartnerId,
    currency: Currency,
    kind: LedgerKind,
    request: PostingRequest,
}

impl Change for WalletPosting {
    async fn describe(&self, _: &OperatorState) -> Result<ChangeDescription, ApiError> {
        #[derive(Serialize)]
        struct Details<'a> {
            currency: Currency,
            #[serde(flatten)]
            request: &'a PostingRequest,
        }
        to_description(
            self.partner_id,
            self.partner_id,
            &Details {
                currency: self.currency,
                request: &self.request,
            },
        )
    }

    async fn preview(self, service: &OperatorState) -> Result<Option<ChangePreview>, ApiError> {
        let (amount, _) = self.request.validate(self.currency, self.kind)?;
        preview_balance(service, self.partner_id, amount.of(self.currency)).await
    }

    async fn carry_out(self, Execution { service, actor, .. }: Execution<'_>) -> ApiResult {
        let (amount, reference) = self.request.validate(self.currency, self.kind)?;
        let money = amount.of(self.currency);
        let command = build_posting(
            service.keyring.vault().fingerprints(),
            self.partner_id,
            money,
            self.kind,
            reference,
            actor,
        );
        post_entry(service, command).await
    }
}

/// A wallet's balance before and after it changes by `change`; `None` if no wallet can have the sum.
pub(super) async fn preview_balance(
    service: &OperatorState,
    partner_id: PartnerId,
    change: Money,
) -> Result<Option<ChangePreview>, ApiError> {
    #[derive(Serialize)]
    struct Balance {
        balance: Money,
    }
    let wallets = service.node.list_wallets(partner_id).await?;
    let wallet = wallets.iter().find(|wallet| wallet.currency == change.currency);
    let now = wallet.map_or(Amount::ZERO, |wallet| wallet.balance.amount);
    let Some(sum) = now.checked_add(change.amount) else {
        return Ok(None);
    };
    let balance = |amount: Amount| Balance {
        balance: amount.of(change.currency),
    };
    to_preview(&balance(now), &balance(sum))
}

/// References are unique per wallet and kind.
fn build_posting(
    fingerprints: &FingerprintKey,
    partner_id: PartnerId,
    money: Money,
    kind: LedgerKind,
    reference: String,
    actor: AuditActor,
) -> TopUp {
    let endpoint = match kind {
        LedgerKind::TopUp => IdempotencyScope::TopUp,
        _ => IdempotencyScope::Adjustment,
    };
    TopUp {
        partner_id,
        money,
        kind,
        key: scoped_hash(partner_id, endpoint, &format!("{}:{reference}", money.currency)),
        fingerprint: posting_fingerprint(fingerprints, money, kind, &reference),
        reference,
        operator: actor,
    }
}

fn posting_fingerprint(
    fingerprints: &FingerprintKey,
    money: Money,
    kind: LedgerKind,
    reference: &str,
) -> Fingerprint {
    let amount = format!("{} {}", money.currency, money.amount.minor());
    fingerprints.fingerprint(kind.into_str(), &amount, reference.as_bytes())
}

async fn post_entry(service: &OperatorState, command: TopUp) -> ApiResult {
    let partner_id = command.partner_id;
    let result = vouchsafe_actors::flows::top_up(&service.engine, command)
        .await
        .map_err(posting_error)?;
    let entry = service
        .store
        .transactions
        .find(partner_id, result.transaction_id)
        .await?;
    let entry = entry.ok_or_else(|| {
        tracing::error!(transaction.id = %result.transaction_id, "ledger entry of a stored reference not found");
        ApiError::new(Code::InternalError, "ledger entry not found")
    })?;
    let mut response = HttpResponse::Created();
    if result.replayed {
        response.insert_header(("Idempotent-Replayed", "true"));
    }
    Ok(response.json(entry))
}

fn posting_error(error: TopUpError) -> ApiError {
    match error {
        TopUpError::InsufficientBalance(_) => ApiError::new(
            Code::InsufficientFunds,
            "the balance is lower than the amount to take away",
        ),
        TopUpError::TooLarge => ApiError::invalid_field("amount", error.to_string()),
        TopUpError::Flow(FlowError::KeyReused) => ApiError::new(
            Code::IdempotencyKeyReused,
            "this reference was used with another amount; use a new reference for a new posting",
        ),
        TopUpError::Flow(FlowError::KeyInFlight | FlowError::OutcomeUnknown) => ApiError::new(
            Code::IdempotencyInProgress,
            "a posting with this reference is in progress; send the same request again",
        ),
        TopUpError::Flow(flow_error) => keyed_request_error(&flow_error),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use vouchsafe_domain::money::Amount;
    use vouchsafe_security::vault::data_key::{DataKey, KeyId, KeyPurpose};
    use vouchsafe_security::vault::seal::Vault;

    use super::*;

    static VAULT: LazyLock<Vault> = LazyLock::new(|| {
        let generate = |id, purpose| DataKey::generate(KeyId(id), purpose).unwrap();
        let keys = [
            generate(1, KeyPurpose::Codes),
            generate(2, KeyPurpose::BlindIndex),
        ];
        Vault::new(&keys, 0).unwrap()
    });

    fn of(minor: i64, currency: &str, kind: LedgerKind, reference: &str) -> TopUp {
        let partner_id = PartnerId::from_uuid(uuid::Uuid::from_bytes([7; 16]));
        build_posting(
            VAULT.fingerprints(),
            partner_id,
            Amount::from_minor(minor).of(currency.parse().unwrap()),
            kind,
            reference.to_owned(),
            AuditActor::service(),
        )
    }

    #[test]
    fn key_depends_on_wallet_kind_and_reference_only() {
        let first = of(100, "USD", LedgerKind::TopUp, "r1");
        assert_eq!(of(100, "USD", LedgerKind::TopUp, "r1").key, first.key);
        assert_eq!(
            of(999, "USD", LedgerKind::TopUp, "r1").key,
            first.key,
            "same key for another amount"
        );
        assert_ne!(of(100, "EUR", LedgerKind::TopUp, "r1").key, first.key);
        assert_ne!(of(100, "USD", LedgerKind::Adjustment, "r1").key, first.key);
        assert_ne!(of(100, "USD", LedgerKind::TopUp, "r2").key, first.key);
    }

    #[test]
    fn fingerprint_depends_on_amount() {
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
