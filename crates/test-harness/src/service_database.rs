//! Direct access to the service's database, for state that no response shows.

use sqlx::{Connection as _, PgConnection};

use crate::instance::Instance;

pub struct ServiceDatabase(PgConnection);

impl ServiceDatabase {
    /// Connects to the service's private Postgres.
    pub async fn of(service: &Instance) -> Self {
        let options = vouchsafe_private_postgres::find_running(service.data_dir()).unwrap();
        Self(PgConnection::connect_with(&options).await.unwrap())
    }

    /// Returns one number; `$1` in the statement is the text.
    pub async fn count(&mut self, sql: &'static str, text: &str) -> i64 {
        sqlx::query_scalar(sql)
            .bind(text)
            .fetch_one(&mut self.0)
            .await
            .unwrap()
    }

    /// Returns texts; `$1` in the statement is the text.
    pub async fn texts(&mut self, sql: &'static str, text: &str) -> Vec<String> {
        sqlx::query_scalar(sql)
            .bind(text)
            .fetch_all(&mut self.0)
            .await
            .unwrap()
    }

    /// Returns the only column of all rows.
    pub async fn all_texts(&mut self, sql: String) -> Vec<String> {
        sqlx::query_scalar(sqlx::AssertSqlSafe(sql))
            .fetch_all(&mut self.0)
            .await
            .unwrap()
    }

    pub async fn run(&mut self, sql: String) {
        sqlx::raw_sql(sqlx::AssertSqlSafe(sql))
            .execute(&mut self.0)
            .await
            .unwrap();
    }

    /// Terminates every other connection, like a restart of the server.
    pub async fn terminate_other_connections(&mut self) {
        let cut = "SELECT pg_terminate_backend(pid)
                     FROM pg_stat_activity
                    WHERE backend_type = 'client backend'
                      AND pid <> pg_backend_pid()";
        self.run(cut.to_owned()).await;
    }
}
