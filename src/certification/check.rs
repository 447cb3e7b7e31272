//! Which points does a certification have, what does each ask for, and what helps who does not pass it?

use serde::{Deserialize, Serialize};

macro_rules! checks {
    ($($(#[doc = $requirement:literal])+ $check:ident = $name:literal $advice:literal;)+) => {
        /// A point of the checklist.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        pub enum Check {
            $($(#[doc = $requirement])+ #[serde(rename = $name)] $check,)+
        }

        impl Check {
            /// All of them, in the order in which they are shown.
            pub const ALL: &[Self] = &[$(Self::$check,)+];

            /// Its name, on the wire and in the database.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$check => $name,)+ }
            }

            /// What must be seen, in a sentence.
            #[must_use]
            pub const fn requirement(self) -> &'static str {
                match self { $(Self::$check => concat!($($requirement),+).trim_ascii(),)+ }
            }

            /// What to do to pass it.
            #[must_use]
            pub const fn advice(self) -> &'static str {
                match self { $(Self::$check => $advice,)+ }
            }
        }
    };
}

checks! {
    /// An order whose answer was lost is sent again, with the same body under the same key.
    LostAnswer = "LOST_ANSWER"
        "Order sbx-lost-answer: the connection breaks before the answer. Send the very bytes again with the same Idempotency-Key.";
    /// A request with a wrong signature is not repeated unchanged; the next one is signed rightly.
    WrongSignature = "WRONG_SIGNATURE"
        "Send a request with a wrong X-Signature, let your client handle INVALID_SIGNATURE, then send one that is signed rightly.";
    /// The codes of an order are fetched while it is PARTIALLY_DELIVERED, and again when it is DELIVERED.
    PartialCodes = "PARTIAL_CODES"
        "Order sbx-instant and sbx-slow together, fetch the codes while the order is PARTIALLY_DELIVERED, and again within ten minutes of DELIVERED.";
    /// After a 429 nothing of that key and class is sent for as long as Retry-After says.
    RateLimit = "RATE_LIMIT"
        "Send more requests of a class than its limit allows, and wait for Retry-After seconds after the 429 before the next one.";
    /// A delivery with a wrong signature is answered 4xx, and one with the right signature 2xx.
    WebhookSignature = "WEBHOOK_SIGNATURE"
        "POST /webhooks/{webhook_id}/test sends your endpoint one of each. Verify every signature before you answer, and answer 401 to a wrong one.";
    /// An event that was taken is taken again: 2xx both times.
    DuplicateEvent = "DUPLICATE_EVENT"
        "POST /webhooks/{webhook_id}/test sends its sample twice, and /replay an event that you have had. Remember event_id, and answer 2xx to one that you know.";
}
