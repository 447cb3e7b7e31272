//! Violations of the history rules, with the operations that show them.

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Violation {
    #[error("operation {op_id}: a 2xx response lacks fields of the API contract")]
    MalformedResponse { op_id: u64 },
    #[error("partner {partner}, key {key}: operations {first} and {second} received different responses")]
    ResponsesDiffer {
        partner: String,
        key: String,
        first: u64,
        second: u64,
    },
    #[error("partner {partner}, key {key}: the outcome of operation {op_id} never became definite")]
    Unsettled {
        partner: String,
        key: String,
        op_id: u64,
    },
    #[error("order {order_id} was acknowledged for operations {first} and {second} under different keys")]
    OrderUnderTwoKeys {
        order_id: String,
        first: u64,
        second: u64,
    },
    #[error(
        "order {order_id} was acknowledged in operation {acknowledged} but not found in operation {read}"
    )]
    OrderLost {
        order_id: String,
        acknowledged: u64,
        read: u64,
    },
    #[error("order {order_id}, acknowledged in operation {acknowledged}, was never read back")]
    NotReadBack { order_id: String, acknowledged: u64 },
    #[error("order {order_id}: {field} differs between operation {acknowledged} and its read {read}")]
    OrderChanged {
        order_id: String,
        field: &'static str,
        acknowledged: u64,
        read: u64,
    },
    #[error("voucher {voucher_id} is in orders {first} and {second}")]
    DuplicateVoucher {
        voucher_id: String,
        first: String,
        second: String,
    },
    #[error("vouchers {first} and {second} have the same code")]
    DuplicateCode { first: String, second: String },
    #[error("voucher {voucher_id} returned two different codes")]
    CodeChanged { voucher_id: String },
    #[error("operation {read} returned codes of vouchers that do not belong to order {order_id}")]
    ForeignCodes { order_id: String, read: u64 },
}
