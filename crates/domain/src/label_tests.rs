//! Texts of enums: one text in the API (serde) and in the database (strum).

use std::fmt::Debug;
use std::str::FromStr;

use serde::Serialize;
use strum::VariantArray;

use crate::api_scope::ApiScope;
use crate::bulk_job::{BulkAction, BulkJobStatus, BulkResult};
use crate::certification::check::Check;
use crate::certification::result::CheckState;
use crate::change_request::{ChangeKind, ChangeRequestStatus};
use crate::delivery::DeliveryFault;
use crate::delivery::attempt::AttemptResult;
use crate::delivery::view::DeliveryState;
use crate::event_kind::EventKind;
use crate::ledger::LedgerKind;
use crate::limits::RequestClass;
use crate::operator::Role;
use crate::operator_session::SignInMethod;
use crate::order::{FulfilmentSource, OrderStatus, PendingReason};
use crate::payout::PayoutStatus;
use crate::product::{CodeCase, CodeIdentity};
use crate::purchase::view::{LastResponse, PurchaseState};
use crate::reconciliation::DriftKind;
use crate::reconciliation::allocations::VoucherSource;
use crate::reconciliation::drift::DriftResolution;
use crate::reconciliation::result::RecordsSource;
use crate::sandbox_fault::FaultKind;
use crate::vendor::{AdapterKind, CircuitState};
use crate::webhook::{DisabledReason, WebhookStatus};

fn assert_one_text<T>()
where
    T: VariantArray + FromStr + Serialize + Copy + PartialEq + Debug + 'static,
    &'static str: From<T>,
{
    for &variant in T::VARIANTS {
        let text: &str = variant.into();
        assert_eq!(serde_json::to_value(variant).unwrap(), text);
        assert_eq!(text.parse().ok(), Some(variant));
    }
    assert!("no such text".parse::<T>().is_err());
}

#[test]
fn enum_has_same_text_in_api_and_database() {
    assert_one_text::<AdapterKind>();
    assert_one_text::<ApiScope>();
    assert_one_text::<BulkAction>();
    assert_one_text::<BulkJobStatus>();
    assert_one_text::<BulkResult>();
    assert_one_text::<ChangeKind>();
    assert_one_text::<ChangeRequestStatus>();
    assert_one_text::<Check>();
    assert_one_text::<CheckState>();
    assert_one_text::<CircuitState>();
    assert_one_text::<CodeCase>();
    assert_one_text::<CodeIdentity>();
    assert_one_text::<AttemptResult>();
    assert_one_text::<DeliveryFault>();
    assert_one_text::<DeliveryState>();
    assert_one_text::<DisabledReason>();
    assert_one_text::<DriftKind>();
    assert_one_text::<DriftResolution>();
    assert_one_text::<EventKind>();
    assert_one_text::<FaultKind>();
    assert_one_text::<FulfilmentSource>();
    assert_one_text::<LastResponse>();
    assert_one_text::<LedgerKind>();
    assert_one_text::<OrderStatus>();
    assert_one_text::<PayoutStatus>();
    assert_one_text::<PendingReason>();
    assert_one_text::<PurchaseState>();
    assert_one_text::<RecordsSource>();
    assert_one_text::<RequestClass>();
    assert_one_text::<Role>();
    assert_one_text::<SignInMethod>();
    assert_one_text::<VoucherSource>();
    assert_one_text::<WebhookStatus>();
}
