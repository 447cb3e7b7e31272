//! `GET /orders/{order_id}/vouchers`: retrieval of voucher codes, the only endpoint that returns them.
//!
//! The request is signed, the response is not cacheable, and the audit row is committed before a code is
//! decrypted. A decrypted code exists only in the response body.

use std::sync::Arc;

use actix_web::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use actix_web::{HttpRequest, HttpResponse, web};
use vouchsafe_domain::ids::OrderId;
use vouchsafe_domain::order::Order;
use vouchsafe_security::vault::seal::Vault;
use vouchsafe_store::{CodeRetrieval, RetrievalOutcome, SealedVoucher};
use vouchsafe_telemetry::trace;
use vouchsafe_wire::error_code::Code;
use vouchsafe_wire::partner::vouchers::{VoucherCodeBody, VoucherCodesBody};

use super::orders;
use crate::api::error::{ApiError, ApiResult};
use crate::api::middleware::authentication::{VerifiedRequest, Vouchers};
use crate::api::path_id::Id;
use crate::api::request_outcome::{self, RequestOutcome};
use crate::service::Service;

pub(super) async fn get(
    service: web::Data<Service>,
    request: HttpRequest,
    signed: VerifiedRequest<Vouchers>,
    order_id: Id<OrderId>,
) -> ApiResult {
    let order_id = order_id.parse()?;
    let retrieval = CodeRetrieval {
        partner_id: signed.caller.partner_id(),
        order_id,
        credential_id: signed.caller.credential_id,
        address: signed.caller.address.to_string(),
        trace_id: trace::current_trace_id(),
    };
    let sealed = match service.node.retrieve_codes(retrieval).await? {
        RetrievalOutcome::Vouchers(sealed) => sealed,
        RetrievalOutcome::NotFound => return Err(orders::not_found(order_id)),
        RetrievalOutcome::NotReady => {
            let order = service
                .node
                .find_order(signed.caller.partner_id(), order_id)
                .await?;
            return Err(order.map_or_else(|| orders::not_found(order_id), |order| no_voucher_error(&order)));
        }
    };
    let vault = vault_with_keys(&service, &sealed).await?;
    let decrypted = sealed
        .iter()
        .map(|voucher| decrypt_voucher(&vault, voucher))
        .collect::<Result<_, _>>()?;
    let body = serde_json::to_vec(&VoucherCodesBody {
        order_id,
        data: decrypted,
    })
    .map_err(|_| decryption_error())?;
    request_outcome::report(&request, signed.caller.partner_id(), || {
        RequestOutcome::CodesFetched {
            order_id,
            vouchers: sealed.len(),
        }
    });
    let mut response = HttpResponse::Ok();
    response
        .insert_header((CONTENT_TYPE, "application/json"))
        .insert_header((CACHE_CONTROL, "no-store"));
    Ok(response.body(body))
}

/// The vault with the keys of all these vouchers.
async fn vault_with_keys(service: &Service, sealed: &[SealedVoucher]) -> Result<Arc<Vault>, ApiError> {
    let keys = sealed.iter().map(|voucher| voucher.sealed.key_id);
    service.keyring.vault_with(keys).await.map_err(|error| {
        tracing::error!(error.message = %error, "cannot reload the data keys");
        ApiError::unavailable()
    })
}

/// The error for an order that had no voucher. It was read after the retrieval, so it may have vouchers by
/// now.
fn no_voucher_error(order: &Order) -> ApiError {
    if order.closed && order.vouchers.is_empty() {
        let refunded = order.refunded.of(order.total.currency);
        let message = format!(
            "no voucher of the order will be delivered; {refunded} {currency} was returned to the wallet, see GET \
             /transactions?order_id={order_id}",
            currency = refunded.currency,
            order_id = order.order_id,
        );
        return ApiError::new(Code::OrderClosed, message);
    }
    ApiError::new(
        Code::OrderNotReady,
        "no voucher of the order is allocated yet; retry once GET /orders/{order_id} shows vouchers",
    )
}

fn decryption_error() -> ApiError {
    ApiError::new(
        Code::InternalError,
        "the codes could not be decrypted; contact the operator",
    )
}

fn decrypt_voucher<'a>(vault: &Vault, voucher: &'a SealedVoucher) -> Result<VoucherCodeBody<'a>, ApiError> {
    let decrypted = vault.open(voucher.code_id, &voucher.sku, &voucher.sealed);
    let credentials = decrypted.map_err(|error| {
        tracing::error!(voucher.id = %voucher.voucher_id, error.message = %error, "cannot decrypt a voucher code");
        decryption_error()
    })?;
    Ok(VoucherCodeBody {
        voucher_id: voucher.voucher_id,
        product_id: &voucher.sku.product_id,
        denomination: voucher.sku.denomination.of(voucher.currency),
        currency: voucher.currency,
        expiry: voucher.expiry,
        credentials,
    })
}

#[cfg(test)]
mod tests {
    use vouchsafe_domain::fixtures::{self, NOW};
    use vouchsafe_domain::order::PendingReason;
    use vouchsafe_domain::transition::{Cause, OrderTransition};

    use super::*;

    #[test]
    fn order_refunded_without_vouchers_is_closed_for_good() {
        let priced = fixtures::priced_lines(&[2]);
        let (order_id, partner_id) = (fixtures::order_id("closed"), fixtures::partner(1));
        let pending = Order::pending(order_id, partner_id, &priced, PendingReason::Vendor, NOW);
        let not_ready = no_voucher_error(&pending);
        assert_eq!(
            (not_ready.code, not_ready.code.retryable()),
            (Code::OrderNotReady, true)
        );
        let mut cancelled = OrderTransition::new(pending, fixtures::transaction_id("refund"), NOW);
        cancelled.cancel(&Cause::SYSTEM);
        let closed = no_voucher_error(&cancelled.finish(1).order);
        assert_eq!((closed.code, closed.code.retryable()), (Code::OrderClosed, false));
        let refund =
            format!("10.00 USD was returned to the wallet, see GET /transactions?order_id={order_id}");
        assert!(closed.message.contains(&refund), "{}", closed.message);
    }
}
