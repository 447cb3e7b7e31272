//! What is a vendor's answer worth? What operators are told of it, and what becomes of the rest. Pure.

use vouchsafe_actors::procurement::Rest;

use crate::store::{LastAnswer, Said};
use crate::vendor::{self, Bought, Failure, PurchaseKey};

/// What is noted of an answer, and what becomes of the rest. `quarantined` names those of its vouchers that were sold before.
pub(super) fn of(
    key: PurchaseKey,
    answer: Result<Bought, Failure>,
    quarantined: Vec<String>,
) -> (Said, Rest) {
    let (answer, last_word, sold, rest) = match answer {
        Ok(Bought { vouchers, rest }) => {
            let (answer, last_word, rest) = match rest {
                vendor::Rest::None => (LastAnswer::Sold, None, Rest::Over),
                vendor::Rest::ToCome(after) => (LastAnswer::Waiting, None, Rest::ToCome(after)),
                vendor::Rest::Never => (
                    LastAnswer::NoMore,
                    Some("the vendor has no more of it"),
                    Rest::Over,
                ),
            };
            let repeated = quarantined.len();
            let repeated = (repeated > 0).then(|| {
                format!("{repeated} codes were sold before and are not taken; claim them from the vendor")
            });
            let last_word = repeated.or(last_word.map(ToOwned::to_owned));
            (answer, last_word, Some(vouchers.len()), rest)
        }
        Err(failure) => {
            let (answer, rest) = of_failure(&failure);
            (answer, Some(failure.to_string()), None, rest)
        }
    };
    let said = Said {
        key,
        answer,
        last_word,
        sold: sold.map(|sold| u32::try_from(sold).unwrap_or(u32::MAX)),
        quarantined,
    };
    (said, rest)
}

const fn of_failure(failure: &Failure) -> (LastAnswer, Rest) {
    match failure {
        Failure::NotBought(_) => (LastAnswer::NotSold, Rest::Over),
        Failure::OutOfStock => (LastAnswer::OutOfStock, Rest::Over),
        Failure::NotNow { after, .. } => (LastAnswer::NotNow, Rest::ToCome(*after)),
        Failure::Unheard => (LastAnswer::NotNow, Rest::ToCome(None)),
        Failure::Unknown { after, .. } => (LastAnswer::Unknown, Rest::ToCome(*after)),
        Failure::Nonsense(_) => (LastAnswer::Refused, Rest::ToCome(None)),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use uuid::Uuid;

    use super::*;
    use crate::vendor::{Nonsense, Why};

    #[test]
    fn only_the_vendors_own_word_ends_a_purchase() {
        let bought = |rest| {
            Ok(Bought {
                vouchers: Vec::new(),
                rest,
            })
        };
        let (why, after) = (Why::TimedOut, Some(Duration::from_secs(7)));
        let schema = Nonsense::Schema {
            field: "vouchers".to_owned(),
        };
        let table = [
            (bought(vendor::Rest::None), LastAnswer::Sold, Rest::Over),
            (
                bought(vendor::Rest::ToCome(after)),
                LastAnswer::Waiting,
                Rest::ToCome(after),
            ),
            (bought(vendor::Rest::Never), LastAnswer::NoMore, Rest::Over),
            (
                Err(Failure::NotBought(Why::Unsold)),
                LastAnswer::NotSold,
                Rest::Over,
            ),
            (Err(Failure::OutOfStock), LastAnswer::OutOfStock, Rest::Over),
            (
                Err(Failure::NotNow { why, after }),
                LastAnswer::NotNow,
                Rest::ToCome(after),
            ),
            (Err(Failure::Unheard), LastAnswer::NotNow, Rest::ToCome(None)),
            (
                Err(Failure::Unknown { why, after }),
                LastAnswer::Unknown,
                Rest::ToCome(after),
            ),
            (
                Err(Failure::Nonsense(schema)),
                LastAnswer::Refused,
                Rest::ToCome(None),
            ),
        ];
        for (answer, word, rest) in table {
            let (said, became) = of(PurchaseKey(Uuid::nil()), answer, Vec::new());
            assert_eq!((said.answer, became), (word, rest));
        }
    }
}
