//! Changes of partners, credentials and catalogue: write to the database, then update the in-memory copies.
//!
//! A lock serializes the changes, so that memory applies them in commit order. A change runs to completion
//! even if its client disconnects.

use std::collections::HashSet;
use std::future::Future;
use std::sync::Arc;

use tokio::sync::Mutex;
use vouchsafe_domain::catalogue::Catalogue;
use vouchsafe_domain::ids::PartnerId;
use vouchsafe_security::registry::{PartnerAccess, PartnerStatus};
use vouchsafe_store::StoreError;

use crate::service::{JobState, Service, State};

/// Serializes changes of partners, credentials and the catalogue.
static CHANGE_LOCK: Mutex<()> = Mutex::const_new(());

/// Runs `work`, which writes a change to the database and then updates memory.
///
/// # Errors
/// [`StoreError`] if the database fails.
pub(crate) async fn apply<C: 'static, T, F>(
    service: &Arc<State<C>>,
    work: impl FnOnce(Arc<State<C>>) -> F,
) -> Result<T, StoreError>
where
    T: Send + 'static,
    F: Future<Output = Result<T, StoreError>> + Send + 'static,
{
    let work = work(Arc::clone(service));
    let serialized = async move {
        let _turn = CHANGE_LOCK.lock().await;
        work.await
    };
    service.store.database.run_detached(serialized).await
}

/// Reads what changes of other nodes have changed; all of it if the changes are not known. Nothing else is
/// read, so the cost of a change does not follow the number of credentials.
///
/// # Errors
/// [`StoreError`] if the database fails; memory is unchanged then.
pub(crate) async fn reload(service: &Arc<JobState>, changes: Option<Vec<i64>>) -> Result<(), StoreError> {
    let state = Arc::clone(service);
    let serialized = async move {
        // Keeps a concurrent change of this node from being overwritten with the older rows loaded here.
        let _turn = CHANGE_LOCK.lock().await;
        match changes {
            Some(changes) => load_changed(&state, changes).await,
            None => load_all(&state).await,
        }
    };
    service.store.database.run_detached(serialized).await
}

async fn load_changed(service: &JobState, changes: Vec<i64>) -> Result<(), StoreError> {
    let changed = service.store.audit_log.changed_objects(changes).await?;
    let products = match changed.has_products {
        true => Some(service.store.products.load_all().await?),
        false => None,
    };
    let mut missing: HashSet<_> = changed.credentials.iter().copied().collect();
    let access = service.store.credentials.load_changed_access(changed).await?;
    suspend(service, &access.unreadable_partners);
    for partner in access.partners {
        service.registry.upsert_partner(partner);
    }
    for credential in access.credentials {
        missing.remove(&credential.credential_id);
        service.registry.upsert_credential(credential);
    }
    // The service deletes rows of ended credentials only. Without its row, a credential that a database user
    // has deleted could not be revoked.
    for credential_id in missing {
        service.registry.revoke(credential_id, service.clock.now());
    }
    if let Some(products) = products {
        service.catalogue.replace(Catalogue::new(products));
    }
    Ok(())
}

/// Suspends partners whose rows cannot be read, the codes of their orders included.
fn suspend(service: &Service, partners: &[PartnerId]) {
    for partner in partners
        .iter()
        .filter_map(|id| service.registry.find_partner(*id))
    {
        service.registry.upsert_partner(PartnerAccess {
            status: PartnerStatus::Suspended { codes_blocked: true },
            ..PartnerAccess::clone(&partner)
        });
    }
}

async fn load_all(service: &JobState) -> Result<(), StoreError> {
    let access = service.store.credentials.load_access().await?;
    let products = service.store.products.load_all().await?;
    suspend(service, &access.unreadable_partners);
    for partner in access.partners {
        service.registry.upsert_partner(partner);
    }
    // The query returns no ended credentials; remove those from memory.
    let live = access
        .credentials
        .iter()
        .map(|credential| credential.credential_id);
    service.registry.retain_credentials(&live.collect());
    for credential in access.credentials {
        service.registry.upsert_credential(credential);
    }
    service.catalogue.replace(Catalogue::new(products));
    Ok(())
}
