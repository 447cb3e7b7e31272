//! Invariants of `vouchsafe verify`, checked on a case's database.

use sqlx::PgPool;
use vouchsafe_verify as verify;

/// Checks that parse stored responses, which the suite replaces with its own texts.
const RESPONSE_CHECKS: [&str; 2] = ["key.order", "key.booking"];

/// Rows that violate an invariant, with the invariant's name.
pub(crate) async fn find_all(pool: &PgPool) -> Vec<String> {
    let mut connection = pool.acquire().await.unwrap();
    let findings = verify::check(&mut connection).await.unwrap();
    for name in RESPONSE_CHECKS {
        assert!(
            findings.iter().any(|finding| finding.name == name),
            "{name} is not among the checks"
        );
    }
    let checked = findings
        .iter()
        .filter(|finding| !RESPONSE_CHECKS.contains(&finding.name));
    let found = checked.flat_map(|finding| finding.rows.iter().map(|row| format!("{}: {row}", finding.name)));
    found.collect()
}
