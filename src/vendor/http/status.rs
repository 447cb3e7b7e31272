//! What does a status mean for "bought or not"?
//!
//! Rule: what is certain is the vendor's own word, in the words of the protocol. A status that any box in between could
//! have given is certain only where it says that nothing was passed on.

use std::borrow::Cow;
use std::time::Duration;

use serde::Deserialize;

use crate::vendor::{Failure, Nonsense, Why};

/// What a call wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Call {
    Buy,
    Ask,
}

impl Call {
    /// This call did nothing. A question without an answer leaves what is asked about as unknown as it was.
    pub(super) const fn not_now(self, why: Why, after: Option<Duration>) -> Failure {
        match self {
            Self::Buy => Failure::NotNow { why, after },
            Self::Ask => Failure::Unknown { why, after },
        }
    }
}

/// The code of an error of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Word {
    OutOfStock,
    PurchaseNotFound,
    KeyReused,
    Other,
}

#[derive(Deserialize)]
struct ErrorBody<'a> {
    #[serde(borrow)]
    error: ErrorFields<'a>,
}

#[derive(Deserialize)]
struct ErrorFields<'a> {
    #[serde(borrow)]
    code: Cow<'a, str>,
}

/// The code of an error, if the answer is one of the protocol.
pub(super) fn word(answer: &[u8]) -> Option<Word> {
    let body: ErrorBody<'_> = serde_json::from_slice(answer).ok()?;
    Some(match &*body.error.code {
        "OUT_OF_STOCK" => Word::OutOfStock,
        "PURCHASE_NOT_FOUND" => Word::PurchaseNotFound,
        "IDEMPOTENCY_KEY_REUSED" => Word::KeyReused,
        _ => Word::Other,
    })
}

/// What is known after an answer without a 2xx.
pub(super) fn meaning(call: Call, status: u16, word: Option<Word>, after: Option<Duration>) -> Failure {
    let unknown = |why| Failure::Unknown { why, after };
    match (status, word) {
        (401 | 403, _) => call.not_now(Why::Credential(status), after),
        (429, _) => call.not_now(Why::Busy, after),
        (408 | 500..=599, _) => unknown(Why::Broken(status)),
        (404, Some(Word::PurchaseNotFound)) if call == Call::Ask => Failure::Unheard,
        (409, Some(Word::KeyReused)) => Nonsense::KeyReused.into(),
        (422, Some(Word::OutOfStock)) if call == Call::Buy => Failure::OutOfStock,
        (409, _) => unknown(Why::Refused(status)),
        (402, Some(_)) => call.not_now(Why::Refused(status), after),
        (400 | 422, Some(_)) if call == Call::Buy => Failure::NotBought(Why::Refused(status)),
        (400 | 422, Some(_)) => unknown(Why::Refused(status)),
        _ => unknown(Why::Foreign(status)),
    }
}

/// Whether the vendor is in trouble: it cannot be reached, says nothing in time, or fails. Being told "no" is no trouble.
pub(super) const fn trouble(failure: &Failure) -> Option<Why> {
    match failure {
        Failure::NotNow { why, .. } | Failure::Unknown { why, .. } => match why {
            Why::Unreachable | Why::TimedOut | Why::Lost | Why::Broken(_) => Some(*why),
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table of `docs/vendor-protocol.md`, line by line: status, code, what a purchase and what a poll learn.
    #[test]
    fn a_status_says_what_is_known() {
        let after = Some(Duration::from_secs(7));
        let unknown = |why| Failure::Unknown { why, after };
        let not_now = |why| Failure::NotNow { why, after };
        let refused = |status| Failure::NotBought(Why::Refused(status));
        for (status, word, buy, ask) in [
            (300, None, unknown(Why::Foreign(300)), unknown(Why::Foreign(300))),
            (
                302,
                Some(Word::Other),
                unknown(Why::Foreign(302)),
                unknown(Why::Foreign(302)),
            ),
            (400, Some(Word::Other), refused(400), unknown(Why::Refused(400))),
            (400, None, unknown(Why::Foreign(400)), unknown(Why::Foreign(400))),
            (
                401,
                None,
                not_now(Why::Credential(401)),
                unknown(Why::Credential(401)),
            ),
            (
                402,
                Some(Word::Other),
                not_now(Why::Refused(402)),
                unknown(Why::Refused(402)),
            ),
            (402, None, unknown(Why::Foreign(402)), unknown(Why::Foreign(402))),
            (
                403,
                Some(Word::Other),
                not_now(Why::Credential(403)),
                unknown(Why::Credential(403)),
            ),
            (
                404,
                Some(Word::PurchaseNotFound),
                unknown(Why::Foreign(404)),
                Failure::Unheard,
            ),
            (
                404,
                Some(Word::Other),
                unknown(Why::Foreign(404)),
                unknown(Why::Foreign(404)),
            ),
            (404, None, unknown(Why::Foreign(404)), unknown(Why::Foreign(404))),
            (408, None, unknown(Why::Broken(408)), unknown(Why::Broken(408))),
            (
                409,
                Some(Word::KeyReused),
                Nonsense::KeyReused.into(),
                Nonsense::KeyReused.into(),
            ),
            (
                409,
                Some(Word::Other),
                unknown(Why::Refused(409)),
                unknown(Why::Refused(409)),
            ),
            (409, None, unknown(Why::Refused(409)), unknown(Why::Refused(409))),
            (
                410,
                Some(Word::Other),
                unknown(Why::Foreign(410)),
                unknown(Why::Foreign(410)),
            ),
            (413, None, unknown(Why::Foreign(413)), unknown(Why::Foreign(413))),
            (
                422,
                Some(Word::OutOfStock),
                Failure::OutOfStock,
                unknown(Why::Refused(422)),
            ),
            (422, Some(Word::Other), refused(422), unknown(Why::Refused(422))),
            (429, None, not_now(Why::Busy), unknown(Why::Busy)),
            (
                500,
                Some(Word::OutOfStock),
                unknown(Why::Broken(500)),
                unknown(Why::Broken(500)),
            ),
            (502, None, unknown(Why::Broken(502)), unknown(Why::Broken(502))),
            (
                503,
                Some(Word::Other),
                unknown(Why::Broken(503)),
                unknown(Why::Broken(503)),
            ),
            (600, None, unknown(Why::Foreign(600)), unknown(Why::Foreign(600))),
        ] {
            assert_eq!(meaning(Call::Buy, status, word, after), buy, "{status} {word:?}");
            assert_eq!(meaning(Call::Ask, status, word, after), ask, "{status} {word:?}");
        }
    }

    #[test]
    fn an_error_is_known_by_its_code() {
        for (body, expected) in [
            (
                r#"{"error":{"code":"OUT_OF_STOCK","message":"m"}}"#,
                Some(Word::OutOfStock),
            ),
            (
                r#"{"error":{"code":"PURCHASE_NOT_FOUND"},"more":1}"#,
                Some(Word::PurchaseNotFound),
            ),
            (
                r#"{"error":{"code":"IDEMPOTENCY_KEY_REUSED"}}"#,
                Some(Word::KeyReused),
            ),
            (r#"{"error":{"code":"SOMETHING_NEW"}}"#, Some(Word::Other)),
            (r#"{"error":"OUT_OF_STOCK"}"#, None),
            (r#"{"error":{"code":5}}"#, None),
            ("<html>not found</html>", None),
            ("", None),
        ] {
            assert_eq!(word(body.as_bytes()), expected, "{body}");
        }
    }

    #[test]
    fn being_told_no_is_no_trouble() {
        let (why, after) = (Why::Broken(503), None);
        assert_eq!(trouble(&Failure::Unknown { why, after }), Some(why));
        let why = Why::Unreachable;
        assert_eq!(trouble(&Failure::NotNow { why, after }), Some(why));
        for calm in [
            Failure::OutOfStock,
            Failure::Unheard,
            Failure::NotBought(Why::Refused(422)),
            Failure::NotNow {
                why: Why::Busy,
                after,
            },
            Failure::Unknown {
                why: Why::Foreign(404),
                after,
            },
            Nonsense::TooLarge.into(),
        ] {
            assert_eq!(trouble(&calm), None, "{calm:?}");
        }
    }
}
