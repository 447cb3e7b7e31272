//! Bodies and filters of the operator listener, one module per noun.

pub mod actors;
pub mod bulk_jobs;
pub mod catalogue;
pub mod categories;
pub mod change_requests;
pub mod credentials;
pub mod decision;
pub mod erasure;
pub mod live;
pub mod metrics;
pub mod monitoring;
pub mod operation;
pub mod operators;
pub mod orders;
pub mod partners;
mod patch_field;
pub mod payouts;
pub mod products;
pub mod reconciliation;
pub mod refusals;
pub mod search;
pub mod sessions;
pub mod settings;
pub mod stock;
pub mod table;
mod text;
pub mod vendors;
pub mod wallets;
pub mod webhooks;

use strum::VariantArray as _;
use vouchsafe_domain::change_request::ChangeKind;
use vouchsafe_domain::operator::Role;

use self::operation::{OperatorAccess, Route};

/// All operations below [`operation::ADMIN_PREFIX`], by module.
pub const OPERATIONS: [&[Route]; 14] = [
    partners::OPERATIONS,
    credentials::OPERATIONS,
    wallets::OPERATIONS,
    catalogue::OPERATIONS,
    vendors::OPERATIONS,
    stock::OPERATIONS,
    orders::OPERATIONS,
    payouts::OPERATIONS,
    reconciliation::OPERATIONS,
    webhooks::OPERATIONS,
    operators::OPERATIONS,
    change_requests::OPERATIONS,
    bulk_jobs::OPERATIONS,
    monitoring::OPERATIONS,
];

/// The least role of both operators of a change request: that of the operation to which the kind belongs.
#[must_use]
pub const fn required_role(kind: ChangeKind) -> Role {
    REQUIRED_ROLES[kind as usize]
}

/// By kind. A kind without an operation, or with several, does not compile.
const REQUIRED_ROLES: [Role; ChangeKind::VARIANTS.len()] = {
    let mut roles = [Role::Admin; ChangeKind::VARIANTS.len()];
    let mut kind = 0;
    while kind < roles.len() {
        roles[kind] = role_of(ChangeKind::VARIANTS[kind]);
        kind += 1;
    }
    roles
};

/// Runs in the compiler only, which has no iterators.
const fn role_of(kind: ChangeKind) -> Role {
    let mut found = None;
    let mut module = 0;
    while module < OPERATIONS.len() {
        let mut operation = 0;
        while operation < OPERATIONS[module].len() {
            let OperatorAccess { role, second } = OPERATIONS[module][operation].access;
            let kinds = second.kinds();
            let mut index = 0;
            while index < kinds.len() {
                if kinds[index] as usize == kind as usize {
                    assert!(
                        found.is_none(),
                        "a kind of change request belongs to two operations"
                    );
                    found = Some(role);
                }
                index += 1;
            }
            operation += 1;
        }
        module += 1;
    }
    match found {
        Some(role) => role,
        None => panic!("a kind of change request belongs to no operation"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn change_requests_require_the_role_of_their_operation() {
        assert_eq!(required_role(ChangeKind::OrderFulfil), Role::Operator);
        assert_eq!(required_role(ChangeKind::TopUp), Role::Admin);
    }
}
