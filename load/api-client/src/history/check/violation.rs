//! Violations of the history rules, with the operations that show them.

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// A 2xx response lacks fields of the API contract.
    #[error("operation {op_id}: a 2xx response lacks fields of the API contract")]
    MalformedResponse { op_id: u64 },
    /// One key returned two different stored responses.
    #[error("partner {partner}, key {key}: operations {first} and {second} received different responses")]
    ResponsesDiffer {
        partner: String,
        key: String,
        /// Operation with the first stored response.
        first: u64,
        /// Operation with another response.
        second: u64,
    },
    /// An outcome never became definite.
    #[error("partner {partner}, key {key}: the outcome of operation {op_id} never became definite")]
    Unsettled {
        partner: String,
        key: String,
        op_id: u64,
    },
    /// Two keys returned the same order.
    #[error("order {order_id} was acknowledged for operations {first} and {second} under different keys")]
    OrderUnderTwoKeys {
        order_id: String,
        /// Operation under the first key.
        first: u64,
        /// Operation under the other key.
        second: u64,
    },
    /// An acknowledged order does not exist.
    #[error(
        "order {order_id} was acknowledged in operation {acknowledged} but not found in operation {read}"
    )]
    OrderLost {
        order_id: String,
        acknowledged: u64,
        read: u64,
    },
    /// An acknowledged order was never read back, so the history proves nothing about it.
    #[error("order {order_id}, acknowledged in operation {acknowledged}, was never read back")]
    NotReadBack { order_id: String, acknowledged: u64 },
    /// An acknowledged order changed.
    #[error("order {order_id}: {field} differs between operation {acknowledged} and its read {read}")]
    OrderChanged {
        order_id: String,
        field: &'static str,
        acknowledged: u64,
        read: u64,
    },
    /// A voucher belongs to two orders, or twice to one.
    #[error("voucher {voucher_id} is in orders {first} and {second}")]
    DuplicateVoucher {
        voucher_id: String,
        /// First order with the voucher.
        first: String,
        /// Second order with the voucher.
        second: String,
    },
    #[error("vouchers {first} and {second} have the same code")]
    DuplicateCode { first: String, second: String },
    /// A voucher returned two different codes.
    #[error("voucher {voucher_id} returned two different codes")]
    CodeChanged { voucher_id: String },
    /// Returned codes do not belong to the order's vouchers.
    #[error("operation {read} returned codes of vouchers that do not belong to order {order_id}")]
    ForeignCodes {
        order_id: String,
        /// Operation that fetched the codes.
        read: u64,
    },
}
