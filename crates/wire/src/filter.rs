//! List filters: the types that define query parameters, command-line options and conditions in the store.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use utoipa::IntoParams;
use utoipa::openapi::path::Parameter;
use vouchsafe_domain::audit_log::{AuditFilter, CheckpointFilter};
use vouchsafe_domain::bulk_job::BulkItemFilter;
use vouchsafe_domain::change_request::ChangeRequestFilter;
use vouchsafe_domain::delivery::attempt::AttemptFilter;
use vouchsafe_domain::delivery::view::DeliveryFilter;
use vouchsafe_domain::ledger::transaction::TransactionFilter;
use vouchsafe_domain::operator_session::SessionFilter;
use vouchsafe_domain::order::filter::{OrderFilter, OrderSearch};
use vouchsafe_domain::partner::PartnerFilter;
use vouchsafe_domain::payout::{PayoutFilter, PayoutSearch};
use vouchsafe_domain::period::Period;
use vouchsafe_domain::product_search::ProductSearch;
use vouchsafe_domain::purchase::view::PurchaseFilter;
use vouchsafe_domain::reconciliation::drift::DriftFilter;
use vouchsafe_domain::webhook::WebhookFilter;

use crate::limit::PageLimit;

/// Filter of a list.
pub trait ListFilter: IntoParams + Serialize + DeserializeOwned + Default {
    /// Entries of a page without `limit` (contract §3); `None`: all of them.
    const DEFAULT_LIMIT: Option<usize> = Some(PageLimit::DEFAULT);

    /// Parameters of the flattened parts, which utoipa's derive does not support.
    fn flattened_parameters() -> Vec<Parameter> {
        Vec::new()
    }
}

/// Query parameters of a filter.
#[must_use]
pub fn filter_parameters<F: ListFilter>() -> Vec<Parameter> {
    [F::into_params(|| None), F::flattened_parameters()].concat()
}

/// Filter of a list without filters.
#[derive(Debug, Default, Serialize, Deserialize, IntoParams, clap::Args)]
pub struct NoFilter {}

impl ListFilter for NoFilter {}

/// Filter of a list that is short enough to be complete in one page, so that a client need not page.
#[derive(Debug, Default, Serialize, Deserialize, IntoParams)]
pub struct WholeList {}

impl ListFilter for WholeList {
    const DEFAULT_LIMIT: Option<usize> = None;
}

impl ListFilter for BulkItemFilter {}
impl ListFilter for ChangeRequestFilter {}
impl ListFilter for CheckpointFilter {}
impl ListFilter for DeliveryFilter {}
impl ListFilter for DriftFilter {}
impl ListFilter for PartnerFilter {}
impl ListFilter for PayoutFilter {}
impl ListFilter for ProductSearch {}
impl ListFilter for PurchaseFilter {}
impl ListFilter for SessionFilter {}
impl ListFilter for WebhookFilter {}

impl ListFilter for AttemptFilter {
    fn flattened_parameters() -> Vec<Parameter> {
        Period::into_params(|| None)
    }
}

impl ListFilter for AuditFilter {
    fn flattened_parameters() -> Vec<Parameter> {
        Period::into_params(|| None)
    }
}

impl ListFilter for OrderFilter {
    fn flattened_parameters() -> Vec<Parameter> {
        Period::into_params(|| None)
    }
}

impl ListFilter for OrderSearch {
    fn flattened_parameters() -> Vec<Parameter> {
        filter_parameters::<OrderFilter>()
    }
}

impl ListFilter for PayoutSearch {
    fn flattened_parameters() -> Vec<Parameter> {
        filter_parameters::<PayoutFilter>()
    }
}

impl ListFilter for TransactionFilter {
    fn flattened_parameters() -> Vec<Parameter> {
        Period::into_params(|| None)
    }
}
