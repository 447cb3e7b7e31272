//! What does the sandbox's vendor sell? Visibly fake vouchers of every product, and the product decides how.
//!
//! Rule: it keeps nothing. What was sold is a function of the purchase and the time, so that asking again, after a
//! restart too, finds the same vouchers, and nothing can be sold twice.

use std::sync::Arc;
use std::time::Duration;

use sha2::{Digest as _, Sha256};
use vouchsafe_actors::domain::clock::Clock;

use super::{PurchaseResult, BuyRequest, VendorFailure, InvalidResponse, PurchaseKey, Shortfall, VendorVoucher, FailureReason};
use crate::vault::code::{CodeParts, VoucherCode};

/// After how long an ordinary purchase is filled.
pub const USUAL_DELAY: Duration = Duration::from_secs(1);

/// After how long a purchase of `sbx-slow` is filled.
pub const SLOW_DELAY: Duration = Duration::from_secs(60);

/// Bytes of a digest that a code shows: enough that no two of a sandbox are alike.
const CODE_BYTES: usize = 8;

/// The sandbox's vendor.
pub struct MockVendor {
    clock: Arc<dyn Clock>,
}

/// What a product makes of its purchases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MockBehavior {
    /// All, after a while.
    Delayed(Duration),
    /// Half, rounded down, after the usual while; never the rest.
    Half,
    NeverSold,
    /// All, after the usual while; but the answer to a purchase is lost.
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
    /// A vendor who reads this clock.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock }
    }

    /// Buys.
    ///
    /// # Errors
    /// [`Failure::NotBought`] where the product is never sold, [`Failure::Unknown`] where the answer is lost.
    pub fn buy(&self, request: &BuyRequest) -> Result<PurchaseResult, VendorFailure> {
        if MockBehavior::of(request.product_id.as_str()) == MockBehavior::ResponseLost {
            return Err(VendorFailure::Unknown {
                reason: FailureReason::TimedOut,
                retry_after: None,
            });
        }
        self.poll(request)
    }

    /// Asks what was sold.
    ///
    /// # Errors
    /// [`Failure::NotBought`] where nothing ever is.
    pub fn poll(&self, request: &BuyRequest) -> Result<PurchaseResult, VendorFailure> {
        let manner = MockBehavior::of(request.product_id.as_str());
        // Whoever asks at that moment, and not a quarter of the time later, sees it filled as it is documented.
        let left = request.requested_at + manner.delay() - self.clock.now();
        if left.is_positive() {
            return Ok(PurchaseResult {
                vouchers: Vec::new(),
                shortfall: Shortfall::Pending(Some(left.unsigned_abs())),
            });
        }
        let (sold, rest) = match manner {
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
            shortfall: rest,
        })
    }
}

/// The voucher with this number of a purchase: the same whenever it is asked for.
fn voucher(request: &BuyRequest, number: u32) -> Result<VendorVoucher, InvalidResponse> {
    let index = usize::try_from(number).unwrap_or(usize::MAX);
    let digest = digest(request.key, number);
    let text = format!("SANDBOX-{}-{digest}", request.product_id.as_str().to_uppercase());
    let parts = CodeParts {
        code: &text,
        pin: Some("0000"),
        ..CodeParts::default()
    };
    let reference = format!("mock-{}-{number}", request.key.0.as_simple());
    Ok(VendorVoucher {
        reference: reference.parse().map_err(|_| InvalidResponse::Schema {
            field: format!("vouchers[{index}].reference"),
        })?,
        code: VoucherCode::parse(parts).map_err(|error| InvalidResponse::Code { index, error })?,
        expiry: request.last_valid_day(),
        product_id: request.product_id.clone(),
        denomination: request.denomination,
        price: request.denomination,
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
