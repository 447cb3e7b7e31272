//! Sequential model of one wallet, one SKU and the orders between them.

use std::collections::BTreeMap;

use vouchsafe_linearizability::{Call, Model, check};

/// In vouchers, at their price of 25 USD. Clients order more than both, so that each runs out first
/// sometimes.
pub(super) const OPENING_BALANCE: u32 = 14;
pub(super) const STOCK: u32 = 10;

/// An operation with its response. Orders are numbered in the order of their responses.
#[derive(Debug, Clone)]
pub(super) enum Operation {
    Placed {
        order: usize,
        quantity: u32,
    },
    /// An order whose client does not know whether it was placed.
    Abandoned {
        quantity: u32,
    },
    WithoutFunds {
        quantity: u32,
    },
    SoldOut {
        quantity: u32,
    },
    Cancelled {
        order: usize,
    },
    NotCancellable {
        order: usize,
    },
    Balance(u32),
    Status {
        order: usize,
        is_refunded: bool,
    },
    Codes {
        order: usize,
    },
    NoCodes {
        order: usize,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum OrderState {
    Delivered(u32),
    Retrieved,
    Refunded,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Shop {
    balance: u32,
    stock: u32,
    orders: BTreeMap<usize, OrderState>,
}

/// One wallet, one SKU and the orders between them.
pub(super) struct ShopModel;

impl Model for ShopModel {
    type State = Shop;
    type Operation = Operation;

    fn initial(&self) -> Shop {
        Shop {
            balance: OPENING_BALANCE,
            stock: STOCK,
            orders: BTreeMap::new(),
        }
    }

    fn apply(&self, shop: &Shop, operation: &Operation) -> Option<Shop> {
        let mut shop = shop.clone();
        let state = |shop: &Shop, order: &usize| shop.orders.get(order).copied();
        let is_permitted = match operation {
            Operation::Placed { order, quantity } => {
                shop.balance = shop.balance.checked_sub(*quantity)?;
                shop.stock = shop.stock.checked_sub(*quantity)?;
                shop.orders
                    .insert(*order, OrderState::Delivered(*quantity))
                    .is_none()
            }
            Operation::Abandoned { quantity } => {
                shop.balance = shop.balance.checked_sub(*quantity)?;
                shop.stock = shop.stock.checked_sub(*quantity)?;
                true
            }
            Operation::WithoutFunds { quantity } => shop.balance < *quantity,
            Operation::SoldOut { quantity } => shop.stock < *quantity,
            Operation::Cancelled { order } => match state(&shop, order)? {
                OrderState::Delivered(quantity) => {
                    shop.balance += quantity;
                    shop.stock += quantity;
                    shop.orders.insert(*order, OrderState::Refunded);
                    true
                }
                OrderState::Refunded => true,
                OrderState::Retrieved => false,
            },
            Operation::NotCancellable { order } => state(&shop, order)? == OrderState::Retrieved,
            Operation::Balance(balance) => shop.balance == *balance,
            Operation::Status { order, is_refunded } => {
                (state(&shop, order)? == OrderState::Refunded) == *is_refunded
            }
            Operation::Codes { order } => {
                let before = shop.orders.insert(*order, OrderState::Retrieved)?;
                before != OrderState::Refunded
            }
            Operation::NoCodes { order } => state(&shop, order)? == OrderState::Refunded,
        };
        is_permitted.then_some(shop)
    }
}

#[test]
fn forged_responses_have_no_order() {
    let call = |operation: Operation, began, ended| Call {
        operation,
        began,
        ended: Some(ended),
    };
    let placed = |order, quantity, began, ended| call(Operation::Placed { order, quantity }, began, ended);
    let has_order = |history: &[Call<Operation>]| check(&ShopModel, history).is_ok();
    let sold = placed(0, 10, 1, 2);
    // Each pair: responses that are possible after the order of all vouchers, and that are not.
    for (possible, forged) in [
        (
            Operation::SoldOut { quantity: 1 },
            Operation::Placed {
                order: 1,
                quantity: 1,
            },
        ),
        (Operation::Balance(4), Operation::Balance(14)),
        (
            Operation::WithoutFunds { quantity: 5 },
            Operation::WithoutFunds { quantity: 4 },
        ),
        (
            Operation::Cancelled { order: 0 },
            Operation::NotCancellable { order: 0 },
        ),
        (Operation::Codes { order: 0 }, Operation::NoCodes { order: 0 }),
        (
            Operation::Status {
                order: 0,
                is_refunded: false,
            },
            Operation::Status {
                order: 0,
                is_refunded: true,
            },
        ),
    ] {
        assert!(has_order(&[sold.clone(), call(possible, 3, 4)]));
        assert!(
            !has_order(&[sold.clone(), call(forged.clone(), 3, 4)]),
            "{forged:?}"
        );
    }
    // A stale read is permitted only beside the order.
    assert!(has_order(&[sold.clone(), call(Operation::Balance(14), 2, 4)]));
    let both = [
        sold,
        call(Operation::Codes { order: 0 }, 3, 9),
        call(Operation::Cancelled { order: 0 }, 3, 9),
    ];
    assert!(
        !has_order(&both),
        "codes were read of an order that was cancelled"
    );
}
