//! What access control loads into memory: partners and credentials, with those that grant nothing.

use std::fmt::Display;

use sqlx::postgres::PgRow;
use vouchsafe_database::database::{Database, Statement};
use vouchsafe_database::error::StoreError;
use vouchsafe_domain::ids::{CredentialId, PartnerId};
use vouchsafe_domain::partner::Partner;
use vouchsafe_operators::grants::{Grants, StoredGrant};
use vouchsafe_security::credential::Credential;
use vouchsafe_security::registry::PartnerAccess;

/// What access control keeps in memory. A forged credential counts as revoked, a forged partner as suspended.
#[derive(Debug)]
pub struct LoadedAccess {
    pub partners: Vec<PartnerAccess>,
    pub credentials: Vec<Credential>,
    /// Partners whose rows do not decode: nothing of theirs may be served.
    pub unreadable_partners: Vec<PartnerId>,
}

impl LoadedAccess {
    /// What these rows grant, and those that do not decode.
    pub(super) fn of(
        grants: &Grants,
        (partners, unreadable_partners): ReadRows<(Partner, StoredGrant), PartnerId>,
        (credentials, unreadable): ReadRows<(Credential, StoredGrant), CredentialId>,
    ) -> Self {
        for partner_id in &unreadable_partners {
            grants.report("partners", partner_id.to_string(), Some(*partner_id));
        }
        for credential_id in &unreadable {
            grants.report("credentials", credential_id.to_string(), None);
        }
        let partners = partners.into_iter().map(|(mut partner, stored)| {
            if !grants.verify(&stored) {
                partner.suspended = true;
                partner.codes_blocked = true;
            }
            PartnerAccess::from(&partner)
        });
        let partners = partners.collect();
        let credentials = credentials.into_iter().map(|(mut credential, stored)| {
            // A revoked one grants nothing, and has no HMAC.
            if credential.revoked_at.is_none() && !grants.verify(&stored) {
                credential.revoked_at = Some(credential.not_before);
            }
            credential
        });
        Self {
            partners,
            credentials: credentials.collect(),
            unreadable_partners,
        }
    }
}

/// Rows, and the ids of those that do not decode.
pub(super) type ReadRows<Row, Id> = (Vec<Row>, Vec<Id>);

/// Reads the rows with these ids; also returns the ids of those that do not decode, which the service never
/// writes. One of them must not keep the others from being read: then a revocation would not reach the nodes.
pub(super) async fn read_rows<Id, Row, F>(
    database: &Database,
    ids: &[Id],
    find: impl Fn(&[Id]) -> Statement<F> + Send + Sync,
) -> Result<ReadRows<Row, Id>, StoreError>
where
    Id: Copy + Display + Send + Sync,
    Row: Send + Unpin + 'static,
    F: FnMut(PgRow) -> Result<Row, sqlx::Error> + Send + 'static,
{
    match database.fetch_all(find(ids)).await {
        Err(error) if error.is_unreadable_row() => {}
        found => return found.map(|rows| (rows, Vec::new())),
    }
    let (mut rows, mut unreadable) = (Vec::new(), Vec::new());
    for id in ids {
        match database.fetch_all(find(&[*id])).await {
            Ok(found) => rows.extend(found),
            Err(error) if error.is_unreadable_row() => {
                tracing::error!(row.id = %id, error.message = %error, "row does not decode");
                unreadable.push(*id);
            }
            Err(error) => return Err(error),
        }
    }
    Ok((rows, unreadable))
}
