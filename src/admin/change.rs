//! How is a change in force at once, in the database and in memory?
//!
//! Rule: a change runs to its end even if the operator's connection is lost after it was sent, and one change follows
//! the other; so memory takes them in the order in which they were committed.

use std::future::Future;

use actix_web::web;
use tokio::sync::Mutex;
use vouchsafe_actors::domain::catalogue::Catalogue;

use crate::errors::ApiError;
use crate::service::Service;

/// Whose turn it is to change partners, credentials or the catalogue.
static TURN: Mutex<()> = Mutex::const_new(());

/// Makes a change: `work` writes it to the database and then into the memory of the service.
pub(super) async fn make<T, F>(
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

/// Reads partners, credentials and products anew: another node may have changed them.
///
/// # Errors
/// [`sqlx::Error`] when the database does not answer; then memory is as it was.
pub async fn take_over_changes(service: &web::Data<Service>) -> Result<(), sqlx::Error> {
    let known = service.clone();
    let in_turn = async move {
        // No change of this node is written while older rows are on their way into memory.
        let _turn = TURN.lock().await;
        let (partners, credentials) = known.store.load_access().await?;
        let products = known.store.load_products().await?;
        for partner in partners {
            known.register.replace_partner(partner);
        }
        for credential in credentials {
            known.register.put_credential(credential);
        }
        known.catalogue.replace(Catalogue::new(products));
        Ok(())
    };
    service.store.to_the_end(in_turn).await
}
