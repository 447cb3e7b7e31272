//! How is a change in force at once, in the database and in memory?
//!
//! Rule: a change runs to its end even if the connection that asked for it is lost after it was sent, and one change follows
//! the other; so memory takes them in the order in which they were committed.

use std::future::Future;

use actix_web::web;
use tokio::sync::Mutex;

use crate::errors::ApiError;
use crate::service::Service;

/// Whose turn it is to change partners, credentials or the catalogue.
static TURN: Mutex<()> = Mutex::const_new(());

/// Makes a change: `work` writes it to the database and then into the memory of the service.
pub(crate) async fn make<T, F>(
    service: &web::Data<Service>,
    work: impl FnOnce(web::Data<Service>) -> F,
) -> Result<T, ApiError>
where
    T: Send + 'static,
    F: Future<Output = Result<T, sqlx::Error>> + Send + 'static,
{
    let work = work(service.clone());
    let in_turn = async move {
        let _turn = TURN.lock().await;
        work.await
    };
    Ok(service.store.to_the_end(in_turn).await?)
}
