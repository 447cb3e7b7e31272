//! Which rule broke, and which operations show it?

/// A broken rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// A 2xx answer lacks what the contract says it holds.
    #[error("operation {op_id}: a 2xx answer without the fields of the contract")]
    MalformedResponse {
        op_id: u64,
    },
    /// One key was given two different answers.
    #[error(
        "partner {partner}, key {key}: operation {first} was given one answer, operation {second} another"
    )]
    ResponsesDiffer {
        partner: String,
        key: String,
        /// The operation with the first kept answer.
        first: u64,
        /// The operation that differs.
        second: u64,
    },
    /// An outcome stayed unknown to the end.
    #[error("partner {partner}, key {key}: the outcome of operation {op_id} never became definite")]
    Unsettled {
        partner: String,
        key: String,
        op_id: u64,
    },
    /// Two keys were answered with one order.
    #[error("order {order_id} was acknowledged to operations {first} and {second} under different keys")]
    OrderUnderTwoKeys {
        order_id: String,
        /// An operation of the first key.
        first: u64,
        /// An operation of the other key.
        second: u64,
    },
    /// An acknowledged order is gone.
    #[error(
        "order {order_id} was acknowledged by operation {acknowledged} and not found by operation {read}"
    )]
    OrderLost {
        order_id: String,
        acknowledged: u64,
        read: u64,
    },
    /// Nobody looked for an acknowledged order afterwards, so the history proves nothing about it.
    #[error("order {order_id}, acknowledged by operation {acknowledged}, was never read back")]
    NotReadBack {
        order_id: String,
        acknowledged: u64,
    },
    /// An acknowledged order reads differently.
    #[error("order {order_id}: {field} differs between operation {acknowledged} and its read {read}")]
    OrderChanged {
        order_id: String,
        field: &'static str,
        acknowledged: u64,
        read: u64,
    },
    /// A voucher stands in two orders, or twice in one.
    #[error("voucher {voucher_id} is in orders {first} and {second}")]
    DuplicateVoucher {
        voucher_id: String,
        /// The order that had it first.
        first: String,
        /// The order that has it too.
        second: String,
    },
    /// One code belongs to two vouchers.
    #[error("vouchers {first} and {second} carry the same code")]
    DuplicateCode {
        first: String,
        second: String,
    },
    /// One voucher was read with two codes.
    #[error("voucher {voucher_id} was read with two different codes")]
    CodeChanged {
        voucher_id: String,
    },
    /// The codes handed out are not those of the order's vouchers.
    #[error("operation {read} handed out codes of other vouchers than order {order_id} has")]
    ForeignCodes {
        order_id: String,
        /// The operation that fetched the codes.
        read: u64,
    },
}
