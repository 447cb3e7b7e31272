//! Checks of a certification: requirement and advice of each.

use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr, VariantArray};

macro_rules! checks {
    ($($(#[doc = $requirement:literal])+ $check:ident = $name:literal $advice:literal;)+) => {
        /// A check of the certification.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, EnumString, IntoStaticStr, VariantArray)]
        #[strum(const_into_str)]
        pub enum Check {
            $($(#[doc = $requirement])+ #[serde(rename = $name)] #[strum(serialize = $name)] $check,)+
        }

        impl Check {
            /// The requirement, as a sentence.
            #[must_use]
            pub const fn requirement(self) -> &'static str {
                match self { $(Self::$check => concat!($($requirement),+).trim_ascii(),)+ }
            }

            /// How to pass the check.
            #[must_use]
            pub const fn advice(self) -> &'static str {
                match self { $(Self::$check => $advice,)+ }
            }
        }
    };
}

checks! {
    /// After a lost response the client repeats the order with the same body and Idempotency-Key.
    LostResponse = "LOST_RESPONSE"
        "Order sbx-lost-response: the connection breaks before the response. Send the same bytes again with the same Idempotency-Key.";
    /// A request with a wrong signature is not repeated unchanged, and the next request has a valid
    /// signature.
    WrongSignature = "WRONG_SIGNATURE"
        "Send a request with a wrong X-Signature, let your client handle INVALID_SIGNATURE, then send one with a valid signature.";
    /// The client fetches the codes of an order while it is PARTIALLY_DELIVERED, and again when it is
    /// DELIVERED.
    PartialCodes = "PARTIAL_CODES"
        "Order sbx-instant and sbx-slow together, fetch the codes while the order is PARTIALLY_DELIVERED, \
         and again within ten minutes of DELIVERED.";
    /// After a 429 the client sends no request of that key and class for Retry-After seconds.
    RateLimit = "RATE_LIMIT"
        "Send more requests of a class than its limit allows, and wait for Retry-After seconds after the 429 before the next one.";
    /// The endpoint answers a delivery with a wrong signature with 4xx, and one with a valid signature with
    /// 2xx.
    WebhookSignature = "WEBHOOK_SIGNATURE"
        "POST /webhooks/{webhook_id}/test sends your endpoint one of each. Verify every signature before \
         you respond, and respond 401 to a wrong one.";
    /// The endpoint answers a repeated event with 2xx both times.
    DuplicateEvent = "DUPLICATE_EVENT"
        "POST /webhooks/{webhook_id}/test sends its sample twice, and /replay repeats an earlier event. \
         Store event_id, and respond 2xx to a known one.";
}
