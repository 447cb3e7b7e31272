//! The invariants that `vouchsafe verify` checks, asked of a case's database.

use sqlx::PgPool;
use vouchsafe::store::verify;

/// These read what an answer says; the suite's answers are texts of its own.
const OF_ANSWERS: [&str; 2] = ["key.order", "key.booking"];

/// Every row that breaks an invariant, under the invariant's name.
pub(crate) async fn all(pool: &PgPool) -> Vec<String> {
    let mut connection = pool.acquire().await.unwrap();
    let findings = verify::check(&mut connection).await.unwrap();
    for name in OF_ANSWERS {
        assert!(
            findings.iter().any(|finding| finding.name == name),
            "{name} is checked no more"
        );
    }
    let checked = findings
        .iter()
        .filter(|finding| !OF_ANSWERS.contains(&finding.name));
    let found = checked.flat_map(|finding| finding.rows.iter().map(|row| format!("{}: {row}", finding.name)));
    found.collect()
}
