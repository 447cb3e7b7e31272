//! Operations and bodies of `/sandbox`: faults, and the next vouchers of the mock vendor.

pub mod clock;

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::json;
use time::OffsetDateTime;
use utoipa::openapi::extensions::Extensions;
use utoipa::openapi::schema::{ObjectBuilder, SchemaType, Type};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};
use vouchsafe_domain::api_scope::ApiScope;
use vouchsafe_domain::purchase::MAX_QUANTITY;
use vouchsafe_domain::sandbox_fault::{
    FaultKind, MAX_FAULT_COUNT, MAX_FAULT_DELAY, MAX_FAULT_TTL, SandboxFault,
};

use self::clock::{SandboxClockBody, SandboxClockRequest};
use crate::error_body::InvalidRequest;
use crate::error_code::Code;
use crate::filter::NoFilter;
use crate::json::{self, JsonObject};
use crate::operation::{Page, operations};
use crate::partner::limits::whole_number;
use crate::partner::operation::{Operation, delete, get, post};
use crate::partner::orders::body::OrderBody;

operations! {
    ApiScope;
    REQUEST_SANDBOX_FAULT: Operation<SandboxFaultRequest, SandboxFaultBody> =
        post("/sandbox/faults", ApiScope::Orders, "requestSandboxFault", "Request a fault");
    LIST_SANDBOX_FAULTS: Operation<NoFilter, Page<SandboxFaultBody>> =
        get("/sandbox/faults", ApiScope::Read, "listSandboxFaults", "List active faults");
    CLEAR_SANDBOX_FAULTS: Operation<(), ()> = delete("/sandbox/faults", ApiScope::Orders, "clearSandboxFaults", "End all faults");
    ADVANCE_SANDBOX_CLOCK: Operation<SandboxClockRequest, SandboxClockBody> =
        post("/sandbox/clock", ApiScope::Orders, "advanceSandboxClock", "Advance your clock");
    APPROVE_SANDBOX_ORDER: Operation<(), OrderBody<'static>> =
        post("/sandbox/orders/{order_id}/approve", ApiScope::Orders, "approveSandboxOrder", "Approve an order")
            .errors(&[Code::OrderNotAwaitingApproval]);
    REJECT_SANDBOX_ORDER: Operation<(), OrderBody<'static>> =
        post("/sandbox/orders/{order_id}/reject", ApiScope::Orders, "rejectSandboxOrder", "Reject an order")
            .errors(&[Code::OrderNotAwaitingApproval]);
    ADVANCE_SANDBOX_ORDER: Operation<SandboxAdvanceRequest, OrderBody<'static>> =
        post("/sandbox/orders/{order_id}/advance", ApiScope::Orders, "advanceSandboxOrder", "Deliver the next vouchers of an order")
            .errors(&[Code::OrderNotFulfillable]);
    FAIL_SANDBOX_ORDER: Operation<(), OrderBody<'static>> =
        post("/sandbox/orders/{order_id}/fail", ApiScope::Orders, "failSandboxOrder", "Fail the rest of an order")
            .errors(&[Code::OrderNotFulfillable]);
}

/// Validity of a fault by default. Seconds.
const DEFAULT_TTL_S: u32 = 600;

/// Delay of a response by default. Seconds.
const DEFAULT_DELAY_S: u32 = 5;

/// A fault to request.
#[derive(Debug)]
pub enum SandboxFaultRequest {}

impl PartialSchema for SandboxFaultRequest {
    fn schema() -> RefOr<Schema> {
        let mut schema = FaultFields::schema();
        if let RefOr::T(Schema::Object(fields)) = &mut schema {
            let only_slow = json!({ "delay_seconds": { "properties": { "fault": { "const": FaultKind::SlowResponse.into_str() } } } });
            fields.extensions = Some(Extensions::from_iter([("dependentSchemas", only_slow)]));
        }
        schema
    }
}

impl ToSchema for SandboxFaultRequest {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        FaultFields::schemas(schemas);
    }
}

/// A fault to request.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct FaultFields {
    /// Kind of fault. It replaces an earlier one of the same kind.
    fault: FaultKind,
    #[serde(default, deserialize_with = "vouchsafe_domain::whole_number::optional")]
    #[schema(schema_with = count_schema)]
    count: Option<u32>,
    #[serde(default, deserialize_with = "vouchsafe_domain::whole_number::optional")]
    #[schema(schema_with = expiry_schema)]
    expires_in_seconds: Option<u32>,
    #[serde(default, deserialize_with = "vouchsafe_domain::whole_number::optional")]
    #[schema(schema_with = delay_schema)]
    delay_seconds: Option<u32>,
}

/// A requested fault.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = SandboxFault)]
pub struct SandboxFaultBody {
    /// Kind of fault.
    fault: FaultKind,
    /// How often it still occurs.
    remaining: u32,
    /// Delay of the response in seconds. Null for other faults than `SLOW_RESPONSE`.
    #[schema(required)]
    delay_seconds: Option<u64>,
    /// When it ends, even if occurrences are left.
    #[serde(with = "vouchsafe_domain::timestamp")]
    expires_at: OffsetDateTime,
}

/// Options of the next delivery of the mock vendor.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SandboxAdvanceRequest {
    #[serde(default, deserialize_with = "vouchsafe_domain::whole_number::optional")]
    #[schema(schema_with = quantity_schema)]
    quantity: Option<u32>,
}

fn count_schema() -> ObjectBuilder {
    optional_number(1, MAX_FAULT_COUNT, "How often the fault occurs. Default: 1.")
}

fn expiry_schema() -> ObjectBuilder {
    let description = format!("After how many seconds the fault ends. Default: {DEFAULT_TTL_S}.");
    optional_number(1, seconds(MAX_FAULT_TTL), &description)
}

fn delay_schema() -> ObjectBuilder {
    let description =
        format!("Only with `SLOW_RESPONSE`: delay of the response in seconds. Default: {DEFAULT_DELAY_S}.");
    optional_number(1, seconds(MAX_FAULT_DELAY), &description)
}

fn quantity_schema() -> ObjectBuilder {
    let description = "How many vouchers the vendor delivers, in the order of the items. More than are pending are all of them. \
                       Default: 1.";
    optional_number(1, MAX_QUANTITY, description)
}

fn optional_number(min: u32, max: u32, description: &str) -> ObjectBuilder {
    whole_number(min, max, description).schema_type(SchemaType::from_iter([Type::Integer, Type::Null]))
}

/// Cannot saturate: the limits are hours at most.
fn seconds(limit: Duration) -> u32 {
    u32::try_from(limit.as_secs()).unwrap_or(u32::MAX)
}

impl SandboxFaultBody {
    #[must_use]
    pub fn of(fault: &SandboxFault) -> Self {
        Self {
            fault: fault.kind,
            remaining: fault.remaining,
            delay_seconds: fault.delay.map(|delay| delay.as_secs()),
            expires_at: fault.expires_at,
        }
    }

    /// The label of the fault: the position in the list.
    #[must_use]
    pub fn label(&self) -> String {
        self.fault.into_str().to_owned()
    }
}

/// Parses a fault to request at time `now`.
///
/// # Errors
/// `MALFORMED_REQUEST` and `VALIDATION_FAILED`.
pub fn parse_fault(body: &[u8], now: OffsetDateTime) -> Result<SandboxFault, InvalidRequest> {
    let JsonObject(request): JsonObject<FaultFields> = json::parse(body)?;
    let ttl = within(
        "expires_in_seconds",
        request.expires_in_seconds,
        DEFAULT_TTL_S,
        seconds(MAX_FAULT_TTL),
    )?;
    let delay = within(
        "delay_seconds",
        request.delay_seconds,
        DEFAULT_DELAY_S,
        seconds(MAX_FAULT_DELAY),
    )?;
    let is_slow = request.fault == FaultKind::SlowResponse;
    if request.delay_seconds.is_some() && !is_slow {
        let message = "only SLOW_RESPONSE has a delay; omit the field";
        return Err(InvalidRequest::field("delay_seconds", message));
    }
    Ok(SandboxFault {
        kind: request.fault,
        remaining: within("count", request.count, 1, MAX_FAULT_COUNT)?,
        delay: is_slow.then(|| Duration::from_secs(delay.into())),
        expires_at: now + Duration::from_secs(ttl.into()),
    })
}

/// Parses the number of vouchers to deliver. The body is optional.
///
/// # Errors
/// `MALFORMED_REQUEST` and `VALIDATION_FAILED`.
pub fn parse_quantity(body: &[u8]) -> Result<u32, InvalidRequest> {
    let request: SandboxAdvanceRequest = json::parse_optional(body)?;
    within("quantity", request.quantity, 1, MAX_QUANTITY)
}

/// An optional number from 1 to `max`.
fn within(field: &str, requested: Option<u32>, default: u32, max: u32) -> Result<u32, InvalidRequest> {
    let number = requested.unwrap_or(default);
    if (1..=max).contains(&number) {
        return Ok(number);
    }
    Err(InvalidRequest::field(field, format!("expected 1 to {max}")))
}

#[cfg(test)]
mod tests {
    use time::macros::datetime;

    use super::*;
    use crate::error_code::Code;

    const NOW: OffsetDateTime = datetime!(2026-11-20 12:00 UTC);

    #[test]
    fn fault_is_bounded_in_count_time_and_delay() {
        let slow = SandboxFault {
            kind: FaultKind::SlowResponse,
            remaining: 1,
            delay: Some(Duration::from_secs(5)),
            expires_at: NOW + Duration::from_secs(600),
        };
        let lost = SandboxFault {
            kind: FaultKind::LostResponse,
            remaining: 100,
            delay: None,
            expires_at: NOW + Duration::from_secs(3_600),
        };
        let invalid = Err(Code::ValidationFailed);
        for (body, expected) in [
            (r#"{"fault":"SLOW_RESPONSE"}"#, Ok(slow.clone())),
            (
                r#"{"fault":"LOST_RESPONSE","count":100,"expires_in_seconds":3600,"delay_seconds":null}"#,
                Ok(lost),
            ),
            (
                r#"{"fault":"SLOW_RESPONSE","count":1.0,"expires_in_seconds":600.0,"delay_seconds":5.0}"#,
                Ok(slow.clone()),
            ),
            (r#"{"fault":"LOST_RESPONSE","count":0}"#, invalid.clone()),
            (r#"{"fault":"LOST_RESPONSE","count":101}"#, invalid.clone()),
            (
                r#"{"fault":"LOST_RESPONSE","expires_in_seconds":3601}"#,
                invalid.clone(),
            ),
            (r#"{"fault":"LOST_RESPONSE","delay_seconds":5}"#, invalid.clone()),
            (r#"{"fault":"SLOW_RESPONSE","delay_seconds":21}"#, invalid.clone()),
            (r#"{"fault":"NONE"}"#, invalid.clone()),
            (r#"{"count":1}"#, invalid.clone()),
            ("", Err(Code::MalformedRequest)),
        ] {
            let parsed = parse_fault(body.as_bytes(), NOW).map_err(|error| error.code);
            assert_eq!(parsed, expected, "{body}");
        }
    }

    #[test]
    fn quantity_is_one_by_default_and_at_most_an_order() {
        for (body, expected) in [
            ("", Ok(1)),
            ("{}", Ok(1)),
            (r#"{"quantity":1000}"#, Ok(1_000)),
            (r#"{"quantity":2.0}"#, Ok(2)),
            (r#"{"quantity":2.5}"#, Err(Code::ValidationFailed)),
            (r#"{"quantity":0}"#, Err(Code::ValidationFailed)),
            (r#"{"quantity":1001}"#, Err(Code::ValidationFailed)),
        ] {
            let parsed = parse_quantity(body.as_bytes()).map_err(|error| error.code);
            assert_eq!(parsed, expected, "{body}");
        }
    }
}
