//! Plans of the comparison with sold vouchers.

use sqlx::Executor as _;
use uuid::Uuid;
use vouchsafe_domain::ids::VoucherId;
use vouchsafe_store::{AuditActor, SoldVoucher, SoldVoucherOutcome};

use super::filled::ListFixture;

/// A comparison with sold vouchers reads their rows only, whether it finds them or not.
pub(super) async fn check_comparison(lists: &ListFixture) {
    let known = "SELECT s.code_id, a.voucher_id FROM allocations AS a JOIN stock AS s USING (stock_id) WHERE line = 0 LIMIT 1";
    let (code_id, known): (i64, Uuid) = sqlx::query_as(known)
        .fetch_one(lists.subject.pool())
        .await
        .unwrap();
    // As autovacuum does.
    let summarize = "SELECT brin_summarize_new_values('allocations_by_voucher')";
    lists.subject.pool().execute(summarize).await.unwrap();
    let [known, lost] = [known, Uuid::now_v7()].map(VoucherId::from_uuid);
    for (sold, expected) in [
        (
            SoldVoucher::CodeRow(code_id, Some(known)),
            SoldVoucherOutcome::Known,
        ),
        (SoldVoucher::Voucher(known), SoldVoucherOutcome::Known),
        (SoldVoucher::Voucher(lost), SoldVoucherOutcome::Unidentified),
        (
            SoldVoucher::CodeRow(i64::MAX, Some(lost)),
            SoldVoucherOutcome::Absent,
        ),
    ] {
        let description = format!("comparison with {sold:?}");
        let compared = async {
            let quarantine = &lists.store.quarantine;
            let outcomes = quarantine.withdraw_sold(vec![sold], "a test".to_owned(), AuditActor::service());
            let outcomes = outcomes.await?;
            assert_eq!(outcomes, [expected]);
            Ok(outcomes)
        };
        lists.assert_reads_few_rows(&description, 1, compared).await;
    }
}
