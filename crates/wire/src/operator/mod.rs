//! Bodies and filters of the operator listener, one module per noun.

pub mod actors;
pub mod catalogue;
pub mod categories;
pub mod change_requests;
pub mod credentials;
pub mod decision;
pub mod limit_use;
#[cfg(test)]
mod limits;
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

use vouchsafe_domain::change_request::ChangeKind;
use vouchsafe_domain::operator::Role;

use self::operation::Route;

/// All operations below [`operation::ADMIN_PREFIX`], by module.
pub const OPERATIONS: [&[Route]; 13] = [
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
    monitoring::OPERATIONS,
];

/// The least role of both operators of a change request: that of the operation to which the kind belongs, the highest if there are
/// several.
#[must_use]
pub fn required_role(kind: ChangeKind) -> Role {
    let roles = operations_of(kind).map(|operation| operation.access.role);
    roles.max().unwrap_or(Role::Admin)
}

fn operations_of(kind: ChangeKind) -> impl Iterator<Item = &'static Route> {
    let operations = OPERATIONS.into_iter().flatten();
    operations.filter(move |operation| operation.access.second.kinds().contains(&kind))
}

#[cfg(test)]
mod tests {
    use strum::VariantArray as _;

    use super::*;

    #[test]
    fn every_kind_of_change_request_belongs_to_one_operation() {
        for kind in ChangeKind::VARIANTS {
            assert_eq!(operations_of(*kind).count(), 1, "{}", kind.into_str());
        }
        assert_eq!(required_role(ChangeKind::OrderFulfil), Role::Operator);
        assert_eq!(required_role(ChangeKind::TopUp), Role::Admin);
    }
}
