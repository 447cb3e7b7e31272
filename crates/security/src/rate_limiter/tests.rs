//! Windows of the rate limiter: per family and class, without other nodes.

use std::sync::Arc;

use time::OffsetDateTime;
use vouchsafe_domain::allowlist::Allowlist;
use vouchsafe_domain::ids::PartnerId;
use vouchsafe_domain::limits::Limit;
use vouchsafe_domain::partner::Partner;

use super::*;
use crate::credential::{ApiKeyHash, ApiSecret};
use crate::registry::PartnerAccess;

const SECOND: Duration = Duration::from_secs(1);

fn limits() -> RateLimiter {
    let limit = |quota| Limit { quota, window_s: 60 };
    RateLimiter::new(DefaultLimits {
        orders: limit(2),
        general: limit(3),
        auth: limit(1),
        vouchers: limit(4),
    })
}

fn family(number: u128) -> CredentialId {
    CredentialId::from_uuid(Uuid::from_u128(number))
}

const NONE: Limits = Limits {
    orders: None,
    general: None,
    auth: None,
    vouchers: None,
};

fn limit_key(limiter: &RateLimiter, number: u128, class: RequestClass, limits: &Limits) -> RateLimitKey {
    limiter.key_of_family(family(number), class, limits)
}

/// The status after a request that passes without the database.
fn acquire(limits: &RateLimiter, key: RateLimitKey, now: Duration) -> RateLimitStatus {
    match limits.try_acquire(key, now) {
        Ok(Admission::Admitted(status)) => status,
        refused => panic!("{refused:?}"),
    }
}

#[test]
fn quota_is_counted_per_family_and_class() {
    let limits = limits();
    for byte in [1, 2] {
        for (class, quota) in [
            (RequestClass::Orders, 2),
            (RequestClass::General, 3),
            (RequestClass::Auth, 1),
            (RequestClass::Vouchers, 4),
        ] {
            for n in 0..quota {
                assert!(
                    limits
                        .peek(limit_key(&limits, byte, class, &NONE), SECOND)
                        .is_ok()
                );
                let status = acquire(&limits, limit_key(&limits, byte, class, &NONE), SECOND);
                assert_eq!(status.remaining, quota - n - 1, "{class:?}");
            }
            assert!(
                limits
                    .peek(limit_key(&limits, byte, class, &NONE), SECOND)
                    .is_err()
            );
            assert!(
                limits
                    .try_acquire(limit_key(&limits, byte, class, &NONE), SECOND)
                    .is_err()
            );
        }
    }
}

#[test]
fn limit_of_the_partner_overrides_the_default() {
    let limits = limits();
    let own = |quota| Limits {
        orders: Some(Limit { quota, window_s: 60 }),
        ..NONE
    };
    let (five, one) = (own(5), own(1));
    for n in 0..5 {
        let status = acquire(
            &limits,
            limit_key(&limits, 1, RequestClass::Orders, &five),
            SECOND,
        );
        assert_eq!(status.remaining, 4 - n);
    }
    assert!(
        limits
            .try_acquire(limit_key(&limits, 1, RequestClass::Orders, &five), SECOND)
            .is_err()
    );
    assert!(
        limits
            .try_acquire(limit_key(&limits, 1, RequestClass::Orders, &one), 60 * SECOND)
            .is_err(),
        "the lowered quota is exceeded by five"
    );
    assert!(
        limits
            .try_acquire(limit_key(&limits, 1, RequestClass::Orders, &one), 61 * SECOND)
            .is_ok()
    );
}

#[test]
fn peek_and_failures_create_no_window() {
    let limits = limits();
    for number in 0..1_000_000 {
        let unknown = limit_key(&limits, number, RequestClass::General, &NONE);
        assert!(limits.peek(unknown, SECOND).is_ok());
        let _ = limits.record_auth_failure("203.0.113.7".parse().unwrap(), SECOND);
    }
    assert_eq!(limits.window_counts(), (0, 1));
    assert!(
        limits
            .try_acquire(limit_key(&limits, 1, RequestClass::Orders, &NONE), 2 * SECOND)
            .is_ok()
    );
    limits.evict_idle(61 * SECOND);
    assert_eq!(limits.window_counts(), (1, 0));
    limits.evict_idle(62 * SECOND);
    assert_eq!(limits.window_counts(), (0, 0));
}

#[test]
fn view_from_before_the_start_of_the_process_counts() {
    let limits = limits();
    let key = limit_key(&limits, 1, RequestClass::Orders, &NONE);
    // Two requests, 50 s old, reported a second after the start.
    limits.apply_view(key.window, 60, &[(50_000_000, 2)], SECOND);
    let Err(Exhausted(status)) = limits.try_acquire(key, SECOND) else {
        panic!("the quota is used up")
    };
    assert_eq!(status.next_slot_in, 10 * SECOND);
    assert_eq!(acquire(&limits, key, 11 * SECOND).remaining, 1);
}

#[test]
fn window_with_a_publication_in_flight_is_not_evicted() {
    let limits = limits();
    let key = limit_key(&limits, 1, RequestClass::Orders, &NONE);
    acquire(&limits, key, SECOND);
    let publications = limits.begin_publications(SECOND);
    assert_eq!(publications.len(), 1);
    assert_eq!(publications[0].ages_us(), [(0, 1)]);
    limits.evict_idle(100 * SECOND);
    assert_eq!(limits.window_counts().0, 1);
    for publication in publications {
        limits.confirm(&publication, &[], 100 * SECOND);
    }
    assert!(limits.begin_publications(SECOND).is_empty(), "published once");
    limits.evict_idle(100 * SECOND);
    assert_eq!(limits.window_counts().0, 0);
}

#[test]
fn ceiling_covers_all_families_and_is_raised_to_their_quotas() {
    let limits = limits();
    let caller = |family_id| {
        let mut partner = PartnerAccess::from(&Partner::new(
            "Acme".to_owned(),
            Allowlist::default(),
            OffsetDateTime::UNIX_EPOCH,
        ));
        partner.partner_id = PartnerId::from_uuid(Uuid::from_u128(9));
        partner.ceilings.orders = Some(Limit {
            quota: 3,
            window_s: 60,
        });
        Caller {
            partner: Arc::new(partner),
            credential_id: family_id,
            address: "203.0.113.7".parse().unwrap(),
            key_hash: ApiKeyHash::from_bytes([1; 32]),
            family_id,
            scopes: None,
            is_awaiting_first_use: false,
            secret: ApiSecret::parse(format!("vss_{}", "0".repeat(64)).as_bytes()).unwrap(),
        }
    };
    let keys = |number, families| limits.keys_of(&caller(family(number)), RequestClass::Orders, || families);
    assert_ne!(keys(1, 1).own, keys(2, 1).own);
    assert_eq!(keys(1, 1).ceiling, keys(2, 1).ceiling);
    let general = limits.keys_of(&caller(family(1)), RequestClass::General, || {
        panic!("without a ceiling no family is counted")
    });
    assert_eq!(general.ceiling, None);
    let key = |families| keys(1, families).ceiling.unwrap();
    assert_eq!([1, 2, 3].map(|families| key(families).limit.quota), [3, 4, 6]);
    assert_eq!(limits.least_ceiling(&NONE, RequestClass::Orders, 2, 60), 4);
    for left in (0..3).rev() {
        assert_eq!(acquire(&limits, key(1), SECOND).remaining, left);
    }
    assert!(limits.try_acquire(key(1), SECOND).is_err());
    assert_eq!(
        acquire(&limits, key(2), SECOND).remaining,
        0,
        "one more credential"
    );
}
