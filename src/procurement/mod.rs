//! How are vouchers bought? The port of the vendors, and the adapters behind it.
//!
//! Rule: a purchase has one key for ever, made durable by the caller before the first call. A vendor sells once under a
//! key, so asking again is safe, and every answer has all that was sold under the key so far. A failure says what is
//! *known* ([`Failure`]), and the caller does what follows from that:
//!
//! | Answer | What is known | What to do |
//! |---|---|---|
//! | [`Rest::None`] | all was sold | take the vouchers in |
//! | [`Rest::ToCome`] | a part was sold, or nothing yet | take it in, poll later |
//! | [`Rest::Never`] | a part was sold, and no more will be | take it in, the rest is not to be had |
//! | [`Failure::NotBought`], [`Failure::OutOfStock`] | nothing was sold, nor will be under this key | it is not to be had |
//! | [`Failure::NotNow`] | this call bought nothing | buy again under the same key, later |
//! | [`Failure::Unheard`] | the vendor has no such purchase (yet) | buy again under the same key |
//! | [`Failure::Unknown`] | nothing | poll later; never buy under another key |
//! | [`Failure::Nonsense`] | the answer was refused, nothing of it was taken | show it to the operator |

pub mod circuit_breaker;
pub mod expiry;
mod failure;
pub mod http;
mod manual;
pub mod mock;
mod purchase;
mod service;
pub mod simulator;

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use secrecy::SecretString;
use serde::{Deserialize, Serialize};
use time::Date;
use utoipa::ToSchema;
use vouchsafe_actors::domain::clock::Clock;

pub use failure::{VendorFailure, InvalidResponse, FailureReason};
pub use purchase::{
    PurchaseResult, BuyRequest, InvalidReference, MAX_QUANTITY, MAX_REFERENCE, PurchaseKey, Shortfall, VendorRecord,
    VendorReference, VendorVoucher,
};

pub(crate) use service::ProcurementService;

use self::http::{HttpVendor, AdapterError, RecordStream, Timeouts, VendorUrl};
use self::mock::MockVendor;

/// How many purchases may be under way with a vendor at a time, unless the operator says so.
pub const DEFAULT_CONCURRENCY: u16 = 4;

/// Most purchases under way with a vendor at a time: each may hold a whole answer in memory.
pub const MAX_CONCURRENCY: u16 = 64;

/// Which adapter speaks to a vendor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(
    description = "Which adapter speaks to a vendor: `mock` (the sandbox's, sells fake vouchers), `http` (the vendor \
    protocol) or `manual` (an operator fulfils)."
)]
pub enum AdapterKind {
    /// The sandbox's: sells fake vouchers.
    Mock,
    Http,
    Manual,
}

/// A word that names no adapter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected `mock`, `http` or `manual`")]
pub struct UnknownAdapter;

impl AdapterKind {
    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Mock => "mock",
            Self::Http => "http",
            Self::Manual => "manual",
        }
    }
}

impl FromStr for AdapterKind {
    type Err = UnknownAdapter;

    fn from_str(text: &str) -> Result<Self, UnknownAdapter> {
        let all = [Self::Mock, Self::Http, Self::Manual];
        all.into_iter()
            .find(|kind| kind.as_str() == text)
            .ok_or(UnknownAdapter)
    }
}

/// What an adapter is told of its vendor.
#[derive(Debug)]
pub struct AdapterConfig {
    pub kind: AdapterKind,
    /// Where the vendor is; there for [`AdapterKind::Http`].
    pub url: Option<VendorUrl>,
    /// What it is shown; there for [`AdapterKind::Http`].
    pub credential: Option<SecretString>,
}

/// What speaks to one vendor. One for all purchases of the vendor: it knows how the vendor has been of late.
pub enum VendorAdapter {
    Mock(MockVendor),
    Http(Box<HttpVendor>),
    Manual,
}

impl VendorAdapter {
    /// What speaks to a vendor with these terms. Nothing is asked of the vendor yet.
    ///
    /// # Errors
    /// [`NoClient`] when the terms are not enough, or this machine cannot speak HTTPS.
    pub fn connect(terms: &AdapterConfig, clock: Arc<dyn Clock>) -> Result<Self, AdapterError> {
        Ok(match terms.kind {
            AdapterKind::Mock => Self::Mock(MockVendor::new(clock)),
            AdapterKind::Http => Self::Http(Box::new(HttpVendor::new(terms, Timeouts::default(), clock)?)),
            AdapterKind::Manual => Self::Manual,
        })
    }

    /// Buys. May be asked again under the same key, and then sells nothing more.
    ///
    /// # Errors
    /// [`Failure`] says what is known.
    pub async fn buy(&self, request: &BuyRequest) -> Result<PurchaseResult, VendorFailure> {
        match self {
            Self::Mock(mock) => mock.buy(request),
            Self::Http(vendor) => vendor.buy(request).await,
            Self::Manual => Ok(manual::pending()),
        }
    }

    /// Asks what became of a purchase. Buys nothing.
    ///
    /// # Errors
    /// [`Failure`]; a poll that gets no word is [`Failure::Unknown`], whatever was known before stands.
    pub async fn poll(&self, request: &BuyRequest) -> Result<PurchaseResult, VendorFailure> {
        match self {
            Self::Mock(mock) => mock.poll(request),
            Self::Http(vendor) => vendor.poll(request).await,
            Self::Manual => Ok(manual::pending()),
        }
    }

    /// The vendor's records of a day (UTC), a page of them in memory at a time; `None` where the vendor keeps none that
    /// can be asked for.
    #[must_use]
    pub fn records(&self, day: Date) -> Option<RecordStream<'_>> {
        match self {
            Self::Http(vendor) => Some(vendor.records(day)),
            Self::Mock(_) | Self::Manual => None,
        }
    }
}

impl fmt::Debug for VendorAdapter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Mock(_) => "Adapter(mock)",
            Self::Http(_) => "Adapter(http)",
            Self::Manual => "Adapter(manual)",
        })
    }
}

#[cfg(test)]
mod tests {
    use vouchsafe_actors::domain::clock::SystemClock;

    use super::*;

    fn connect(kind: AdapterKind, url: Option<&str>, credential: Option<&str>) -> Result<VendorAdapter, AdapterError> {
        let terms = AdapterConfig {
            kind,
            url: url.map(|url| url.parse().unwrap()),
            credential: credential.map(SecretString::from),
        };
        assert!(!format!("{terms:?}").contains("a-secret"));
        VendorAdapter::connect(&terms, Arc::new(SystemClock::new()))
    }

    #[test]
    fn an_adapter_has_what_it_needs_or_is_none() {
        let url = Some("http://127.0.0.1:9400");
        let of_http = |url, credential| connect(AdapterKind::Http, url, credential);
        assert!(matches!(of_http(url, Some("a-secret")), Ok(VendorAdapter::Http(_))));
        for (url, credential) in [(None, Some("a-secret")), (url, None), (None, None)] {
            assert!(matches!(of_http(url, credential), Err(AdapterError::Incomplete)));
        }
        let unsendable = of_http(url, Some("a-secret\n"));
        assert!(matches!(unsendable, Err(AdapterError::Credential)));
        assert!(matches!(
            connect(AdapterKind::Mock, None, None),
            Ok(VendorAdapter::Mock(_))
        ));
        assert!(matches!(
            connect(AdapterKind::Manual, None, None),
            Ok(VendorAdapter::Manual)
        ));
    }

    #[test]
    fn who_fulfils_by_hand_has_nothing_yet_and_no_books() {
        let adapter = connect(AdapterKind::Manual, None, None).unwrap();
        let waiting = manual::pending();
        assert!(waiting.vouchers.is_empty() && waiting.shortfall == Shortfall::Pending(None));
        assert!(adapter.records(time::macros::date!(2026 - 11 - 20)).is_none());
    }

    #[test]
    fn an_adapter_is_named_by_one_word() {
        for kind in [AdapterKind::Mock, AdapterKind::Http, AdapterKind::Manual] {
            assert_eq!(kind.as_str().parse(), Ok(kind));
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.as_str());
        }
        assert_eq!("HTTP".parse::<AdapterKind>(), Err(UnknownAdapter));
    }
}
