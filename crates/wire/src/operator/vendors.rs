//! Operations and bodies of `/vendors`.

use std::borrow::Cow;

use secrecy::SecretString;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use utoipa::ToSchema;
use vouchsafe_domain::bounds::{Count, WrittenText};
use vouchsafe_domain::change_request::ChangeKind;
use vouchsafe_domain::identifier;
use vouchsafe_domain::operator::Role;
use vouchsafe_domain::purchase::view::{PurchaseFilter, PurchaseView};
use vouchsafe_domain::schema::HttpUrl;
use vouchsafe_domain::vendor::{AdapterKind, Circuit, DEFAULT_CONCURRENCY, MAX_CONCURRENCY, Vendor};
use vouchsafe_security::environment::Environment;
use vouchsafe_security::secret::expose;

use crate::column::col;
use crate::error_body::InvalidRequest;
use crate::error_code::Code;
use crate::filter::NoFilter;
use crate::json;
use crate::operation::{Page, operations};
use crate::operator::decision::ReasonRequest;
use crate::operator::operation::SecondOperator::{Never, Sometimes};
use crate::operator::operation::{Operation, OperatorAccess, get, post, put};

operations! {
    OperatorAccess;
    LIST_VENDORS: Operation<NoFilter, Page<VendorWithCircuit>> =
        get("/vendors", Role::Viewer, "listVendors", "List vendors")
            .columns(&[
                col("Vendor", "vendor_id"),
                col("Adapter", "adapter"),
                col("Circuit", "circuit.state"),
                col("URL", "url").text(20),
                col("Purchases at once", "concurrency"),
                col("Changed", "updated_at").at(7),
                col("Has a credential", "has_credentials").at(4).terminal_only(),
                col("Next probe", "circuit.next_probe_at").terminal_only(),
            ]);
    GET_VENDOR: Operation<(), VendorWithCircuit> =
        get("/vendors/{vendor_id}", Role::Viewer, "getVendor", "Get a vendor").errors(&[Code::VendorNotFound]);
    PUT_VENDOR: Operation<VendorRequest, Vendor> =
        put("/vendors/{vendor_id}", Role::Admin, Sometimes(&[ChangeKind::VendorPut]), "putVendor", "Create or replace a vendor");
    LIST_PURCHASES: Operation<PurchaseFilter, Page<PurchaseView>> =
        get("/purchases", Role::Viewer, "listPurchases", "List purchases")
            .columns(&[
                col("Purchase", "purchase_id"),
                col("Order", "order_id"),
                col("Vendor", "vendor"),
                col("Product", "product_id").at(9),
                col("Quantity", "quantity"),
                col("State", "state").at(2),
                col("Last response", "last_response").at(3),
                col("Requested", "requested_at").at(10),
                col("Sold", "sold").terminal_only(),
                col("Imported", "imported").terminal_only(),
                col("Message", "last_message").text(20).terminal_only(),
            ]);
    GET_PURCHASE: Operation<(), PurchaseView> = get("/purchases/{purchase_id}", Role::Viewer, "getPurchase", "Get a purchase");
    END_PURCHASE: Operation<ReasonRequest, PurchaseView> =
        post("/purchases/{purchase_id}/end", Role::Operator, Never, "endPurchase", "End a purchase");
}

/// Bytes: tokens with claims take a few KiB, and the credential must fit into a header.
const MAX_CREDENTIAL: usize = 4_096;

/// A vendor and its circuit breaker.
#[derive(Debug, Serialize, ToSchema)]
pub struct VendorWithCircuit {
    #[serde(flatten)]
    pub vendor: Vendor,
    /// Circuit breaker on the node that responded; null if the vendor has no server, or the node has not
    /// called it since its start or the vendor's last change.
    #[schema(required)]
    pub circuit: Option<Circuit>,
}

/// Definition of a vendor.
#[derive(Debug, Serialize, Deserialize, ToSchema, clap::Args)]
#[serde(deny_unknown_fields)]
pub struct VendorRequest {
    /// Adapter through which vouchers are bought.
    #[serde(deserialize_with = "json::enum_value")]
    #[arg(
        long,
        value_parser = vouchsafe_domain::arguments::enum_parser::<AdapterKind>(),
        help = "Adapter: mock (sandbox only), http (the vendor protocol) or manual (you fulfil the orders)"
    )]
    adapter: AdapterKind,
    /// URL of the vendor's API, for `http` only: https, or http to the same machine.
    #[serde(default)]
    #[schema(value_type = Option<HttpUrl>)]
    #[arg(long, help = "URL of the vendor's API, for http only")]
    url: Option<String>,
    /// Bearer token for the vendor, for `http` only; never shown. If omitted, the stored one stays unless the
    /// URL changes.
    #[serde(
        default,
        serialize_with = "serialize_secret",
        deserialize_with = "deserialize_secret"
    )]
    #[schema(value_type = Option<WrittenText<1, { MAX_CREDENTIAL }>>)]
    #[arg(
        long,
        value_name = "TEXT",
        help = "Bearer token, for http only: @FILE, - for standard input, or the text, which other users of this machine may \
                see [default: the stored one, unless the url changes]"
    )]
    pub credentials: Option<SecretString>,
    /// Maximum number of purchases in flight; default 4.
    #[serde(default, deserialize_with = "vouchsafe_domain::whole_number::optional")]
    #[schema(value_type = Option<Count<1, { MAX_CONCURRENCY as u32 }>>)]
    #[arg(
        long,
        value_name = "N",
        help = "Maximum number of purchases in flight [default: 4]"
    )]
    concurrency: Option<u16>,
}

impl VendorRequest {
    /// The adapter, if the environment permits it.
    ///
    /// # Errors
    /// `VALIDATION_FAILED`.
    pub fn validate_adapter(&self, environment: Environment) -> Result<AdapterKind, InvalidRequest> {
        match (self.adapter, environment) {
            (AdapterKind::Mock, Environment::Production) => Err(InvalidRequest::field(
                "adapter",
                "the adapter `mock` is available in the sandbox only; expected `http` or `manual`",
            )),
            (adapter, _) => Ok(adapter),
        }
    }

    /// The URL, an identifier; required for `http`, forbidden for other adapters.
    ///
    /// # Errors
    /// `VALIDATION_FAILED`.
    pub fn validate_url(&self) -> Result<Option<Cow<'_, str>>, InvalidRequest> {
        match (self.adapter, &self.url) {
            (AdapterKind::Http, Some(url)) => {
                let url = identifier::normalize(url).map(Some);
                url.map_err(|error| InvalidRequest::field("url", format!("remove the {error}")))
            }
            (AdapterKind::Http, None) => Err(InvalidRequest::field("url", "required for the adapter `http`")),
            (AdapterKind::Mock | AdapterKind::Manual, None) => Ok(None),
            (AdapterKind::Mock | AdapterKind::Manual, Some(_)) => Err(http_only_error("url")),
        }
    }

    /// The limit of concurrent purchases.
    ///
    /// # Errors
    /// `VALIDATION_FAILED`.
    pub fn validate_concurrency(&self) -> Result<u16, InvalidRequest> {
        let concurrency = self.concurrency.unwrap_or(DEFAULT_CONCURRENCY);
        let fits = (1..=MAX_CONCURRENCY).contains(&concurrency);
        fits.then_some(concurrency)
            .ok_or_else(|| InvalidRequest::field("concurrency", format!("expected 1 to {MAX_CONCURRENCY}")))
    }

    /// The new credential, for `http` only; `None` keeps the stored one.
    ///
    /// # Errors
    /// `VALIDATION_FAILED`.
    pub fn validate_credentials(&self) -> Result<Option<&SecretString>, InvalidRequest> {
        let Some(credential) = &self.credentials else {
            return Ok(None);
        };
        if self.adapter != AdapterKind::Http {
            return Err(http_only_error("credentials"));
        }
        let text = expose(credential);
        if !(1..=MAX_CREDENTIAL).contains(&text.len()) || !text.bytes().all(|b| b.is_ascii_graphic()) {
            let message = format!("expected 1 to {MAX_CREDENTIAL} visible ASCII characters");
            return Err(InvalidRequest::field("credentials", message));
        }
        Ok(Some(credential))
    }
}

/// Serializes the request: no response contains the credential.
fn serialize_secret<S: Serializer>(secret: &Option<SecretString>, serializer: S) -> Result<S::Ok, S::Error> {
    secret.as_ref().map(expose).serialize(serializer)
}

fn deserialize_secret<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<SecretString>, D::Error> {
    Option::<String>::deserialize(deserializer).map(|text| text.map(SecretString::from))
}

fn http_only_error(field: &str) -> InvalidRequest {
    InvalidRequest::field(field, "allowed for the adapter `http` only; omit it")
}
