//! Changes of partners, credentials and catalogue: write to the database, then update the in-memory copies.
//!
//! A lock serializes the changes, so that memory applies them in commit order. A change runs to completion even if its client
//! disconnects.

use std::future::Future;

use actix_web::web;
use tokio::sync::Mutex;
use vouchsafe_domain::catalogue::Catalogue;

use crate::service::Service;

/// Serializes changes of partners, credentials and the catalogue.
static CHANGE_LOCK: Mutex<()> = Mutex::const_new(());

/// Runs `work`, which writes a change to the database and then updates memory.
///
/// # Errors
/// [`sqlx::Error`] if the database fails.
pub(crate) async fn apply<T, F>(
    service: &web::Data<Service>,
    work: impl FnOnce(web::Data<Service>) -> F,
) -> Result<T, sqlx::Error>
where
    T: Send + 'static,
    F: Future<Output = Result<T, sqlx::Error>> + Send + 'static,
{
    let work = work(service.clone());
    let serialized = async move {
        let _turn = CHANGE_LOCK.lock().await;
        work.await
    };
    service.job_store.database.run_detached(serialized).await
}

/// Reloads partners, credentials and products, which another node may have changed.
///
/// # Errors
/// [`sqlx::Error`] if the database fails; memory is unchanged then.
pub(crate) async fn reload(service: &web::Data<Service>) -> Result<(), sqlx::Error> {
    let state = service.clone();
    let serialized = async move {
        // Keeps a concurrent change of this node from being overwritten with the older rows loaded here.
        let _turn = CHANGE_LOCK.lock().await;
        let (partners, credentials) = state.job_store.credentials.load_access().await?;
        let products = state.job_store.products.load_all().await?;
        for partner in partners {
            state.registry.upsert_partner(partner);
        }
        // The query returns no revoked credentials; remove those from memory.
        let live = credentials.iter().map(|credential| credential.credential_id);
        state.registry.retain_credentials(&live.collect());
        for credential in credentials {
            state.registry.upsert_credential(credential);
        }
        state.catalogue.replace(Catalogue::new(products));
        Ok(())
    };
    service.job_store.database.run_detached(serialized).await
}
