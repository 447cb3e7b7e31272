//! Compile-time checked SQL: the committed descriptions equal those of a freshly migrated server.

use std::path::Path;

use serde_json::Value;
use sqlx::{AssertSqlSafe, Executor as _, SqlSafeStr as _};

use crate::database::Database;

/// The data against which the query macros check SQL and types.
const OFFLINE_DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/crates/store/.sqlx");

#[tokio::test(flavor = "multi_thread")]
async fn offline_data_equals_descriptions_of_migrated_server() {
    let database = Database::create().await;
    let mut connection = database.connect().await;
    let mut count = 0;
    for file in Path::new(OFFLINE_DATA).read_dir().unwrap() {
        let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
        let data: Value = serde_json::from_str(&text).unwrap();
        let query = data["query"].as_str().unwrap();
        let described = connection
            .describe(AssertSqlSafe(query).into_sql_str())
            .await
            .unwrap_or_else(|error| panic!("{error}, in a query of {OFFLINE_DATA}; run ./dev queries:\n{query}"));
        assert_eq!(
            serde_json::to_value(&described).unwrap(),
            data["describe"],
            "run ./dev queries:\n{query}"
        );
        count += 1;
    }
    assert!(count > 100, "{count} descriptions in {OFFLINE_DATA}");
    database.remove().await;
}
