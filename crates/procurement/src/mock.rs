//! Mock vendor of the sandbox: visibly fake vouchers of every product. The product id selects the behavior.
//!
//! Stateless: what was sold is a function of purchase and time. Polling returns the same vouchers, also after
//! a restart, and nothing can be sold twice.

mod records;

use std::sync::Arc;
use std::time::Duration;

use sha2::{Digest as _, Sha256};
use vouchsafe_actors::ports::vendors::ForcedResponse;
use vouchsafe_domain::clock::Clock;
use vouchsafe_domain::purchase::{BuyRequest, PurchaseKey, VendorReference};
use vouchsafe_security::vault::code::{CodeParts, VoucherCode};

pub use self::records::{MockRecords, MockRecordsError};
use super::{FailureReason, InvalidResponse, PurchaseResult, Shortfall, VendorFailure, VendorVoucher};

/// Delay of an ordinary purchase.
pub const USUAL_DELAY: Duration = Duration::from_secs(1);

/// Delay of a purchase of `sbx-slow`.
pub const SLOW_DELAY: Duration = Duration::from_secs(60);

/// Bytes of a digest in a code: enough to be unique within a sandbox.
const CODE_BYTES: usize = 8;

/// The failure of a purchase whose response is lost.
const TIMED_OUT: VendorFailure = VendorFailure::Unknown {
    reason: FailureReason::TimedOut,
    retry_after: None,
};

pub struct MockVendor {
    clock: Arc<dyn Clock>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MockBehavior {
    /// Everything, after a delay.
    Delayed(Duration),
    /// Half, rounded down, after the usual delay; never the rest.
    Half,
    NeverSold,
    /// Everything, after the usual delay, but the response to the purchase is lost.
    ResponseLost,
}

impl MockBehavior {
    fn of(product_id: &str) -> Self {
        match product_id {
            "sbx-slow" => Self::Delayed(SLOW_DELAY),
            "sbx-partial" => Self::Half,
            "sbx-vendor-fails" => Self::NeverSold,
            "sbx-vendor-timeout" => Self::ResponseLost,
            _ => Self::Delayed(USUAL_DELAY),
        }
    }

    const fn delay(self) -> Duration {
        match self {
            Self::Delayed(delay) => delay,
            Self::Half | Self::NeverSold | Self::ResponseLost => USUAL_DELAY,
        }
    }
}

impl MockVendor {
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock }
    }

    /// # Errors
    /// [`VendorFailure::NotBought`] if the product is never sold, [`VendorFailure::Unknown`] if the response
    /// is lost.
    pub fn buy(&self, request: &BuyRequest) -> Result<PurchaseResult, VendorFailure> {
        if MockBehavior::of(request.product_id.as_str()) == MockBehavior::ResponseLost {
            return Err(TIMED_OUT);
        }
        self.poll(request)
    }

    /// # Errors
    /// [`VendorFailure::NotBought`] if the product is never sold.
    pub fn poll(&self, request: &BuyRequest) -> Result<PurchaseResult, VendorFailure> {
        let behavior = MockBehavior::of(request.product_id.as_str());
        // Returns the exact remaining time, so that the next poll finds the purchase filled after the
        // documented delay.
        let remaining = request.requested_at + behavior.delay() - self.clock.now();
        if remaining.is_positive() {
            return Ok(PurchaseResult {
                vouchers: Vec::new(),
                shortfall: Shortfall::Pending(Some(remaining.unsigned_abs())),
            });
        }
        let (sold, shortfall) = match behavior {
            MockBehavior::Delayed(_) | MockBehavior::ResponseLost => (request.quantity, Shortfall::None),
            MockBehavior::Half => (request.quantity / 2, Shortfall::Final),
            MockBehavior::NeverSold => (0, Shortfall::Final),
        };
        if sold == 0 {
            return Err(VendorFailure::NotBought(FailureReason::NotSold));
        }
        let vouchers = (0..sold).map(|number| voucher(request, number));
        Ok(PurchaseResult {
            vouchers: vouchers.collect::<Result<_, _>>()?,
            shortfall,
        })
    }
}

impl MockVendor {
    /// The response that a partner requests, to a purchase of which `sold` vouchers were sold. Later
    /// responses of the vendor contain the same vouchers.
    ///
    /// # Errors
    /// [`VendorFailure::NotBought`] if nothing was sold and nothing will be, [`VendorFailure::Unknown`] after
    /// a timeout.
    pub fn respond(
        request: &BuyRequest,
        sold: u32,
        forced: ForcedResponse,
    ) -> Result<PurchaseResult, VendorFailure> {
        let (sold, shortfall) = match forced {
            ForcedResponse::TimeOut => return Err(TIMED_OUT),
            ForcedResponse::Refuse if sold == 0 => {
                return Err(VendorFailure::NotBought(FailureReason::NotSold));
            }
            ForcedResponse::Refuse => (sold, Shortfall::Final),
            ForcedResponse::Sell(more) if sold.saturating_add(more) >= request.quantity => {
                (request.quantity, Shortfall::None)
            }
            ForcedResponse::Sell(more) => (sold + more, Shortfall::Pending(None)),
        };
        let vouchers = (0..sold).map(|number| voucher(request, number));
        Ok(PurchaseResult {
            vouchers: vouchers.collect::<Result<_, _>>()?,
            shortfall,
        })
    }
}

/// The voucher with this number of a purchase; deterministic.
fn voucher(request: &BuyRequest, number: u32) -> Result<VendorVoucher, InvalidResponse> {
    let index = usize::try_from(number).unwrap_or(usize::MAX);
    let digest = digest(request.key, number);
    let text = format!("SANDBOX-{}-{digest}", request.product_id.as_str().to_uppercase());
    let parts = CodeParts {
        code: &text,
        pin: Some("0000"),
        ..CodeParts::default()
    };
    Ok(VendorVoucher {
        reference: voucher_reference(request, number)?,
        code: VoucherCode::parse(parts).map_err(|error| InvalidResponse::Code { index, error })?,
        expiry: request.last_valid_day(),
        product_id: request.product_id.clone(),
        denomination: request.denomination,
        price: request.denomination,
    })
}

fn voucher_reference(request: &BuyRequest, number: u32) -> Result<VendorReference, InvalidResponse> {
    let reference = format!("mock-{}-{number}", request.key.0.as_simple());
    reference.parse().map_err(|_| InvalidResponse::Schema {
        field: format!("vouchers[{number}].reference"),
    })
}

fn digest(key: PurchaseKey, number: u32) -> String {
    let digest = Sha256::new()
        .chain_update(key.0.as_bytes())
        .chain_update(number.to_be_bytes())
        .finalize();
    hex::encode_upper(&digest[..CODE_BYTES])
}

#[cfg(test)]
mod tests;
