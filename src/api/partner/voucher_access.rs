//! `GET /orders/{order_id}/vouchers/access`: the reads of an order's codes, newest first, from the audit log.

use actix_web::web;
use vouchsafe_domain::audit_action::AuditAction;
use vouchsafe_domain::audit_log::AuditFilter;
use vouchsafe_domain::ids::OrderId;
use vouchsafe_wire::partner::voucher_access::VoucherAccess;

use super::orders;
use crate::api::error::ApiResult;
use crate::api::list_request::list_response;
use crate::api::partner::PartnerState;
use crate::api::partner::authenticated_list::AuthenticatedList;
use crate::api::path_id::Id;

pub(super) async fn list(
    service: web::Data<PartnerState>,
    AuthenticatedList { caller, page, .. }: AuthenticatedList,
    order_id: Id<OrderId>,
) -> ApiResult {
    let (partner_id, order_id) = (caller.partner_id(), order_id.parse()?);
    let status = service.store.orders.find_status(partner_id, order_id).await?;
    if status.is_none() {
        return Err(orders::not_found(order_id));
    }
    let reads = AuditFilter {
        operator: Some(partner_id.to_string()),
        action: Some(AuditAction::RetrieveCodes.into_str().to_owned()),
        subject: Some(order_id.to_string()),
        ..AuditFilter::default()
    };
    let rows = service
        .store
        .audit_log
        .list(reads, page.after()?, page.fetch_limit())
        .await?;
    let entries: Vec<_> = rows
        .into_iter()
        .map(VoucherAccess::of)
        .collect::<Result<_, _>>()?;
    list_response(&page, entries, VoucherAccess::audit_id)
}
