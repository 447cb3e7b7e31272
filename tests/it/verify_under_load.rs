//! `verify` beside orders: ranges that are read one after the other, while orders go on, show no violation.

use std::sync::atomic::{AtomicBool, Ordering};

use hyper::Method;
use vouchsafe_test_harness::{Instance, Operator, Partner, Sale, expect_success, id_of};
use vouchsafe_verify as verify;

const PARTNERS: usize = 3;

/// Orders of a partner at most: a slow check does not sell out the product.
const ORDERS_PER_PARTNER: usize = 1_500;

/// Checks while orders are placed.
const CHECKS: usize = 5;

/// Small ranges: orders are committed between most of them.
const ROWS_PER_RANGE: u32 = 7;

/// Places orders until `is_checked` or [`ORDERS_PER_PARTNER`]; every third is cancelled, the codes of every
/// fourth are read.
async fn trade(mut partner: Partner, sale: &Sale, is_checked: &AtomicBool) -> usize {
    let mut orders = 0;
    while orders < ORDERS_PER_PARTNER && !is_checked.load(Ordering::Relaxed) {
        orders += 1;
        let order_id = id_of(&expect_success(&partner.order(sale, 1).await, 201));
        if orders % 3 == 0 {
            let path = format!("/orders/{order_id}/cancel");
            expect_success(&partner.send_signed(Method::POST, &path, "").await, 200);
        } else if orders % 4 == 0 {
            expect_success(&partner.get_codes(&order_id).await, 200);
        }
    }
    orders
}

#[tokio::test]
async fn ranges_read_beside_orders_show_no_violation() {
    let mut service = Instance::start();
    let mut operator = Operator::of(&service);
    let sale = operator
        .add_stocked_product(2 * PARTNERS * ORDERS_PER_PARTNER)
        .await;
    let mut partners = Vec::new();
    for _ in 0..PARTNERS {
        partners.push(operator.add_partner("1000000").await);
    }
    let is_checked = AtomicBool::new(false);
    let trades = partners
        .into_iter()
        .map(|partner| trade(partner, &sale, &is_checked));
    let check = async {
        let options = vouchsafe_private_postgres::find_running(service.data_dir()).unwrap();
        let mut connection = verify::connect(&options).await.unwrap();
        for _ in 0..CHECKS {
            let findings = verify::check_in_ranges(&mut connection, ROWS_PER_RANGE)
                .await
                .unwrap();
            let broken: Vec<_> = findings.iter().filter(|finding| !finding.holds).collect();
            assert!(broken.is_empty(), "{broken:#?}");
        }
        is_checked.store(true, Ordering::Relaxed);
    };
    let (orders, ()) = tokio::join!(futures_util::future::join_all(trades), check);
    assert!(orders.iter().all(|orders| *orders > CHECKS), "{orders:?}");
    assert_eq!(service.stop(), Some(0));
}
