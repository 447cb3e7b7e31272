//! Commits that sell or return vouchers while these are compared with a list of sold ones, quarantined or
//! released.

use std::sync::LazyLock;

use vouchsafe_actors::ports::record::{Record, Verdict};
use vouchsafe_domain::product::CodeScope;
use vouchsafe_domain::stock::{ClaimedStock, UnclaimableStock};
use vouchsafe_domain::store_error::CommitError;
use vouchsafe_domain::voucher::StockVoucher;
use vouchsafe_security::vault::code::{CodeParts, VoucherCode};
use vouchsafe_security::vault::data_key::{DataKey, KeyId, KeyPurpose};
use vouchsafe_security::vault::seal::Vault;
use vouchsafe_simulation::build;
use vouchsafe_simulation::conformance::{
    Fixture, NODE, OtherTransaction as _, STALE_STATE, STALE_STOCK, Subject as _, assert_blocked,
    assert_committed, cancel_order, claimed_vouchers,
};
use vouchsafe_store::{
    AuditActor, CodeMatch, ReleaseGround, ReleaseOutcome, ReleasedPart, SoldVoucher, SoldVoucherOutcome,
    StockRelease,
};

use crate::subject::PgSubject;

/// Blocks a cancellation after its checks: it credits the wallet.
const LOCK_WALLETS: &str = "SELECT FROM wallets FOR UPDATE";

/// Blocks a commit after it has written everything but its events.
const LOCK_FEEDS: &str = "SELECT FROM feeds FOR UPDATE";

static VAULT: LazyLock<Vault> = LazyLock::new(|| {
    let generate = |id, purpose| DataKey::generate(KeyId(id), purpose).unwrap();
    let keys = [
        generate(1, KeyPurpose::Codes),
        generate(2, KeyPurpose::BlindIndex),
    ];
    Vault::new(&keys, 0).unwrap()
});

/// Gives a voucher a code, by which a list of sold vouchers names it.
async fn name_by_code(subject: &PgSubject, voucher: &StockVoucher) -> SoldVoucher {
    let code = voucher.stock_id.0.to_string();
    let parts = CodeParts {
        code: &code,
        ..CodeParts::default()
    };
    let index = VAULT.blind_index(CodeScope::exact("gift"), &VoucherCode::parse(parts).unwrap());
    sqlx::query("UPDATE codes SET blind_index = $2 WHERE code_id = (SELECT s.code_id FROM stock AS s WHERE s.stock_id = $1)")
        .bind(voucher.stock_id.0)
        .bind(&index.as_bytes()[..])
        .execute(subject.pool())
        .await
        .unwrap();
    SoldVoucher::Code(CodeMatch {
        blind_index: index,
        code_index: None,
    })
}

/// Sells the vouchers to the order "k". Returns one cancellation of it per name.
async fn sell_and_cancel<const N: usize>(
    fixture: &mut Fixture<'_, PgSubject>,
    vouchers: &[StockVoucher],
    names: [&str; N],
) -> [Record; N] {
    fixture.must_commit(&fixture.delivered_order("k", vouchers)).await;
    let order_id = build::order_id("k");
    let stored = fixture.store.load_order(fixture.partner, order_id).await.unwrap();
    let stored = stored.expect("the order exists");
    let mut records = Vec::new();
    for name in names {
        let numbers = fixture.store.allocate_stock_ids(vouchers.len()).await.unwrap();
        records.push(cancel_order(&stored, name, &numbers));
    }
    records.try_into().unwrap()
}

/// Runs until as many transactions wait for a lock; returns the output if it ends before.
async fn run_until_blocked<T>(
    subject: &PgSubject,
    transactions: usize,
    run: &mut (impl Future<Output = T> + Unpin),
) -> Option<T> {
    tokio::select! {
        biased;
        output = run => Some(output),
        () = subject.wait_for_blocked(transactions) => None,
    }
}

/// Without a quarantine, so that no lock but that of the order serializes the two.
pub(super) async fn comparison_waits_for_cancellation_and_withdraws_returned_voucher(
    mut fixture: Fixture<'_, PgSubject>,
) {
    let subject = fixture.subject;
    let gifts = fixture.add_stock(1).await;
    let sold = name_by_code(subject, &gifts[0]).await;
    let records = sell_and_cancel(&mut fixture, &gifts, ["cancelled"]).await;
    let wallet = subject.begin_with(sqlx::query(LOCK_WALLETS)).await;
    let mut cancellation = fixture.lane.send(&records);
    assert_blocked(subject, 1, &mut cancellation).await;
    let quarantine = subject.proxied_store(NODE).quarantine;
    let mut comparison = quarantine.withdraw_sold(vec![sold], "a test".to_owned(), AuditActor::service());
    let ended_early = run_until_blocked(subject, 2, &mut comparison).await;
    wallet.rollback().await;
    assert_committed(&cancellation.await.unwrap());
    let outcomes = match ended_early {
        Some(outcomes) => outcomes,
        None => comparison.await,
    };
    assert_eq!(
        fixture.claim(&[]).await,
        ClaimedStock::default(),
        "it is not sold again"
    );
    assert_eq!(outcomes.unwrap(), [SoldVoucherOutcome::Withdrawn]);
}

/// The comparison waits for a free voucher of its list, with the order of another one locked.
pub(super) async fn cancellation_waits_for_comparison_and_is_stale(mut fixture: Fixture<'_, PgSubject>) {
    let subject = fixture.subject;
    let gifts = fixture.add_stock(2).await;
    let mut sold = Vec::new();
    for gift in &gifts {
        sold.push(name_by_code(subject, gift).await);
    }
    let records = sell_and_cancel(&mut fixture, &gifts[..1], ["cancelled"]).await;
    let void = subject.begin_void(gifts[1].stock_id).await;
    let quarantine = &subject.store().quarantine;
    let mut comparison = quarantine.withdraw_sold(sold, "a test".to_owned(), AuditActor::service());
    assert_blocked(subject, 1, &mut comparison).await;
    let mut cancellation = fixture.lane.send(&records);
    assert_blocked(subject, 2, &mut cancellation).await;
    void.commit().await;
    let (outcomes, verdicts) = tokio::join!(comparison, cancellation);
    assert_eq!(
        outcomes.unwrap(),
        [SoldVoucherOutcome::Kept, SoldVoucherOutcome::Withdrawn]
    );
    assert_eq!(verdicts.unwrap(), [STALE_STATE]);
    assert_eq!(subject.allocations().await.len(), 2);
}

/// Guard `return-unread`: a statement marks a voucher as read without the lock of its order, after a
/// cancellation has checked it.
pub(super) async fn voucher_read_beside_its_cancellation_is_not_returned(
    mut fixture: Fixture<'_, PgSubject>,
) {
    const READ: &str = "
        WITH read AS (
            UPDATE allocations SET first_retrieved_at = now()
        )
        INSERT INTO audit_log (at, operator, action, subject) VALUES (now(), 'somebody', 'stock.compare', 'stock')";
    let subject = fixture.subject;
    let gifts = fixture.add_stock(1).await;
    let records = sell_and_cancel(&mut fixture, &gifts, ["cancelled"]).await;
    let wallet = subject.begin_with(sqlx::query(LOCK_WALLETS)).await;
    let mut cancellation = fixture.lane.send(&records);
    assert_blocked(subject, 1, &mut cancellation).await;
    sqlx::query(READ).execute(subject.pool()).await.unwrap();
    wallet.rollback().await;
    let outcome = cancellation.await;
    assert!(matches!(outcome, Err(CommitError::Contended(_))), "{outcome:?}");
    assert_eq!(fixture.commit_one(&records[0]).await, STALE_STATE, "sent again");
    assert_eq!(subject.allocations().await.len(), 1);
}

/// Guard `return-once`: two records of a batch return the same voucher. Sent alone, as a lane sends the parts
/// of a rejected batch, the first one is written.
pub(super) async fn voucher_in_two_returns_of_a_batch_is_returned_once(mut fixture: Fixture<'_, PgSubject>) {
    let gifts = fixture.add_stock(1).await;
    let records = sell_and_cancel(&mut fixture, &gifts, ["first", "second"]).await;
    let outcome = fixture.lane.send(&records).await;
    assert!(matches!(outcome, Err(CommitError::Contended(_))), "{outcome:?}");
    assert!(matches!(
        fixture.commit_one(&records[0]).await,
        Verdict::Committed(_)
    ));
    assert_eq!(fixture.commit_one(&records[1]).await, STALE_STATE);
}

/// Guard `continuity-lock`: a voucher that returns to quarantined stock is released with the others, not left
/// behind.
pub(super) async fn voucher_returned_during_release_is_for_sale(mut fixture: Fixture<'_, PgSubject>) {
    let subject = fixture.subject;
    let quarantine = &subject.store().quarantine;
    let gifts = fixture.add_stock(1).await;
    let records = sell_and_cancel(&mut fixture, &gifts, ["cancelled"]).await;
    let reason = || "a test".to_owned();
    quarantine.start(reason(), AuditActor::service()).await.unwrap();
    let feed = subject.begin_with(sqlx::query(LOCK_FEEDS)).await;
    let mut cancellation = fixture.lane.send(&records);
    assert_blocked(subject, 1, &mut cancellation).await;
    let request = StockRelease {
        ground: ReleaseGround::NothingLost,
        quarantine: None,
        kept: Vec::new(),
        reason: reason(),
    };
    let mut release = quarantine.release(request, AuditActor::service());
    let ended_early = run_until_blocked(subject, 2, &mut release).await;
    feed.rollback().await;
    assert_committed(&cancellation.await.unwrap());
    let outcome = match ended_early {
        Some(outcome) => outcome,
        None => release.await,
    };
    let released = ReleaseOutcome::Released(ReleasedPart {
        vouchers: 1,
        has_more: false,
        quarantine: 1,
        is_active: false,
    });
    assert_eq!(outcome.unwrap(), released);
    assert!(!quarantine.is_active().await.unwrap());
    let claimed = claimed_vouchers(&fixture.claim(&[]).await);
    assert_eq!(claimed.len(), 1, "the returned voucher is for sale");
}

/// A quarantine includes a voucher that returns meanwhile: it waits for the commit.
pub(super) async fn voucher_returned_during_quarantine_is_quarantined(mut fixture: Fixture<'_, PgSubject>) {
    let subject = fixture.subject;
    let quarantine = &subject.store().quarantine;
    let gifts = fixture.add_stock(1).await;
    let records = sell_and_cancel(&mut fixture, &gifts, ["cancelled"]).await;
    let feed = subject.begin_with(sqlx::query(LOCK_FEEDS)).await;
    let mut cancellation = fixture.lane.send(&records);
    assert_blocked(subject, 1, &mut cancellation).await;
    let mut start = quarantine.start("a test".to_owned(), AuditActor::service());
    let ended_early = run_until_blocked(subject, 2, &mut start).await;
    feed.rollback().await;
    assert_committed(&cancellation.await.unwrap());
    let started = match ended_early {
        Some(started) => started,
        None => start.await,
    };
    started.unwrap();
    let claimed = fixture.claim(&[]).await;
    assert!(
        claimed.chunks.is_empty(),
        "the returned voucher is quarantined: {claimed:?}"
    );
    assert!(quarantine.is_active().await.unwrap());
}

/// Guard `chunk-cleared`: a voucher that this node has claimed before the quarantine.
pub(super) async fn voucher_of_quarantined_chunk_is_stale(mut fixture: Fixture<'_, PgSubject>) {
    let gifts = fixture.add_stock(1).await;
    let quarantine = &fixture.subject.store().quarantine;
    let start = quarantine.start("a test".to_owned(), AuditActor::service());
    start.await.unwrap();
    let order = fixture.delivered_order("k", &gifts);
    assert_eq!(fixture.commit_one(&order).await, STALE_STOCK);
    assert_eq!(
        fixture.claim(&[]).await.unclaimable,
        UnclaimableStock::Quarantined
    );
}

/// Guard `running-commits`: when a quarantine has ended, no commit sells from its stock any more.
pub(super) async fn quarantine_waits_for_running_commit(mut fixture: Fixture<'_, PgSubject>) {
    let subject = fixture.subject;
    let gifts = fixture.add_stock(2).await;
    fixture
        .must_commit(&fixture.delivered_order("first", &gifts[..1]))
        .await;
    let feed = subject.begin_with(sqlx::query(LOCK_FEEDS)).await;
    let records = [fixture.delivered_order("k", &gifts[1..])];
    let mut commit = fixture.lane.send(&records);
    assert_blocked(subject, 1, &mut commit).await;
    let quarantine = subject.proxied_store(NODE).quarantine;
    let mut start = quarantine.start("a test".to_owned(), AuditActor::service());
    let ended_early = run_until_blocked(subject, 2, &mut start).await;
    feed.rollback().await;
    assert_committed(&commit.await.unwrap());
    assert!(
        ended_early.is_none(),
        "the quarantine ended before a commit that sells from its stock"
    );
    start.await.unwrap();
}
