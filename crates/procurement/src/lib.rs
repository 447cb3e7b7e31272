//! Procurement from vendors: the adapters by which vouchers are bought, and the engine's procurement port
//! (`service`).
//!
//! A purchase has one idempotency key, which the caller stores before the first call. A vendor sells once
//! under a key, so retries are safe, and each result contains everything sold under the key so far. A failure
//! states what is *known* ([`VendorFailure`]):
//!
//! | Result | Known | Caller's action |
//! |---|---|---|
//! | [`Shortfall::None`] | everything was sold | import the vouchers |
//! | [`Shortfall::Pending`] | a part was sold, or nothing yet | import it, poll later |
//! | [`Shortfall::Final`] | a part was sold, and no more will be | import it; the rest is final |
//! | [`VendorFailure::NotBought`], [`VendorFailure::OutOfStock`] | nothing was sold, nor will be under this key | end the purchase |
//! | [`VendorFailure::RetryLater`] | this call bought nothing | buy again later under the same key |
//! | [`VendorFailure::PurchaseNotFound`] | the vendor has no such purchase (yet) | buy again under the same key |
//! | [`VendorFailure::Unknown`] | nothing | poll later; never buy under another key |
//! | [`VendorFailure::InvalidResponse`] | the response was discarded | show it to the operator |

pub mod circuit_breaker;
mod failure;
pub mod http;
pub mod limits;
mod manual;
pub mod metrics;
pub mod mock;
mod purchase;
pub mod reconciliation;
mod service;
pub mod simulator;

use std::fmt;
use std::sync::Arc;

use secrecy::SecretString;
use time::Date;
use vouchsafe_domain::clock::Clock;
use vouchsafe_domain::purchase::BuyRequest;
use vouchsafe_domain::vendor::{AdapterKind, VendorNetwork};
use vouchsafe_store::VendorWithCredential;
use vouchsafe_store::keyring::Keyring;

pub use failure::{FailureReason, InvalidResponse, VendorFailure};
pub use purchase::{PurchaseResult, Shortfall, VendorRecord, VendorVoucher};

pub use service::ProcurementService;

use self::http::{AdapterError, HttpVendor, RecordStream, Timeouts, VendorUrl};
use self::mock::MockVendor;

/// The vendor settings that an adapter needs.
#[derive(Debug)]
pub struct AdapterConfig {
    pub kind: AdapterKind,
    /// Required for [`AdapterKind::Http`].
    pub url: Option<VendorUrl>,
    /// Required for [`AdapterKind::Http`].
    pub credential: Option<SecretString>,
    /// Where its server may be.
    pub network: VendorNetwork,
}

/// The adapter of one vendor, shared by all its purchases: it holds the vendor's circuit breaker.
pub enum VendorAdapter {
    Mock(MockVendor),
    Http(Box<HttpVendor>),
    Manual,
}

impl VendorAdapter {
    /// Creates an adapter; makes no call.
    ///
    /// # Errors
    /// [`AdapterError`] if the configuration is incomplete, or this machine cannot use HTTPS.
    pub fn connect(config: &AdapterConfig, clock: Arc<dyn Clock>) -> Result<Self, AdapterError> {
        Ok(match config.kind {
            AdapterKind::Mock => Self::Mock(MockVendor::new(clock)),
            AdapterKind::Http => Self::Http(Box::new(HttpVendor::new(config, Timeouts::default(), clock)?)),
            AdapterKind::Manual => Self::Manual,
        })
    }

    /// Creates the adapter of a configured vendor, with its own circuit breaker; the error is the reason why
    /// there is none.
    async fn open(
        access: &VendorWithCredential,
        keyring: &Keyring,
        network: VendorNetwork,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, String> {
        let VendorWithCredential { vendor, credential } = access;
        let vault = keyring
            .vault_with(credential.as_ref().map(|sealed| sealed.key_id))
            .await;
        let vault = vault.map_err(|error| error.to_string())?;
        let open = |sealed| vault.open_credential(&vendor.vendor_id, vendor.url.as_deref(), sealed);
        let credential = credential.as_ref().map(open).transpose();
        let url = vendor.url.as_deref().map(str::parse).transpose();
        let config = AdapterConfig {
            kind: vendor.adapter,
            url: url.map_err(|_| "the vendor's url is invalid; put it again")?,
            credential: credential
                .map_err(|error| format!("cannot decrypt the vendor's credential: {error}"))?,
            network,
        };
        Self::connect(&config, clock).map_err(|error| error.to_string())
    }

    /// Buys. Repeating it under the same key sells nothing more.
    ///
    /// # Errors
    /// [`VendorFailure`] states what is known.
    pub async fn buy(&self, request: &BuyRequest) -> Result<PurchaseResult, VendorFailure> {
        match self {
            Self::Mock(mock) => mock.buy(request),
            Self::Http(vendor) => vendor.buy(request).await,
            Self::Manual => Ok(manual::pending()),
        }
    }

    /// Returns the state of a purchase without buying.
    ///
    /// # Errors
    /// [`VendorFailure`]; a poll without a conclusive response is [`VendorFailure::Unknown`] and changes
    /// nothing.
    pub async fn poll(&self, request: &BuyRequest) -> Result<PurchaseResult, VendorFailure> {
        match self {
            Self::Mock(mock) => mock.poll(request),
            Self::Http(vendor) => vendor.poll(request).await,
            Self::Manual => Ok(manual::pending()),
        }
    }

    /// The vendor's records of a UTC day, one page in memory at a time; `None` if the adapter does not fetch
    /// records. Those of the mock are derived from our purchases ([`mock::MockRecords`]).
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
    use vouchsafe_domain::clock::SystemClock;

    use super::*;

    fn connect(
        kind: AdapterKind,
        url: Option<&str>,
        credential: Option<&str>,
    ) -> Result<VendorAdapter, AdapterError> {
        let config = AdapterConfig {
            kind,
            url: url.map(|url| url.parse().unwrap()),
            credential: credential.map(SecretString::from),
            network: VendorNetwork::Any,
        };
        assert!(!format!("{config:?}").contains("a-secret"));
        VendorAdapter::connect(&config, Arc::new(SystemClock::new()))
    }

    #[test]
    fn vendor_on_a_private_address_is_refused_where_public_ones_are_required() {
        for (url, is_accepted) in [
            ("https://vendor.example", true),
            ("http://127.0.0.1:22", false),
            ("https://127.0.0.1", false),
            ("https://10.0.0.1/api", false),
            ("https://169.254.169.254", false),
            ("https://[::1]", false),
        ] {
            let config = AdapterConfig {
                kind: AdapterKind::Http,
                url: Some(url.parse().unwrap()),
                credential: Some("a-secret".to_owned().into()),
                network: VendorNetwork::Public,
            };
            let adapter = VendorAdapter::connect(&config, Arc::new(SystemClock::new()));
            let is_refused = matches!(adapter, Err(AdapterError::Refused(_)));
            assert_eq!(is_refused, !is_accepted, "{url}");
        }
    }

    #[test]
    fn adapter_with_incomplete_config_is_refused() {
        let url = Some("http://127.0.0.1:9400");
        let of_http = |url, credential| connect(AdapterKind::Http, url, credential);
        assert!(matches!(
            of_http(url, Some("a-secret")),
            Ok(VendorAdapter::Http(_))
        ));
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
    fn manual_adapter_is_pending_and_has_no_records() {
        let adapter = connect(AdapterKind::Manual, None, None).unwrap();
        let result = manual::pending();
        assert!(result.vouchers.is_empty() && result.shortfall == Shortfall::Pending(None));
        assert!(adapter.records(time::macros::date!(2026 - 11 - 20)).is_none());
    }
}
