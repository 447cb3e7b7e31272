//! HMACs of the rows that grant access: the key, and the check of a row.
//!
//! | Row | Checked |
//! |---|---|
//! | token, session, sign-in link and account of an operator, identity | at each use |
//! | partner, credential | when they are loaded into memory, and before a change that would compute their HMAC anew |

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use uuid::Uuid;
use vouchsafe_audit_log::ForgedGrant;
use vouchsafe_database::error::{InvalidMac, StoreError};
use vouchsafe_domain::ids::{OperatorSessionId, OperatorTokenId, PartnerId};
use vouchsafe_domain::operator::OperatorName;
use vouchsafe_domain::operator_session::SessionAuthentication;
use vouchsafe_security::operator_token::OperatorTokenHash;
use vouchsafe_security::vault::grant_key::{Grant, GrantKey, TokenGrant};

/// Rows without a valid HMAC that wait for their audit entries. Further ones get no entries until these are
/// written.
const MAX_FORGED: usize = 100;

/// The key of the HMACs, once the vault is unlocked. Until then no row grants anything.
#[derive(Debug, Clone, Default)]
pub struct Grants(Arc<GrantState>);

#[derive(Debug, Default)]
struct GrantState {
    key: OnceLock<GrantKey>,
    forged: Mutex<BTreeSet<ForgedGrant>>,
}

impl Grants {
    /// Sets the key of the vault.
    pub fn unlock(&self, key: GrantKey) {
        self.0.key.get_or_init(|| key);
    }

    /// The grants of a vault that is unlocked, with this key.
    #[must_use]
    pub fn of(key: GrantKey) -> Self {
        let grants = Self::default();
        grants.unlock(key);
        grants
    }

    /// The HMAC of a row that is about to be written.
    ///
    /// # Errors
    /// [`StoreError::NotWritten`] while the vault is locked.
    pub fn mac(&self, grant: &Grant) -> Result<Vec<u8>, StoreError> {
        let key = self.0.key.get();
        let locked = || StoreError::NotWritten(sqlx::Error::Configuration("the vault is locked".into()));
        let key = key.ok_or_else(locked)?;
        Ok(key.mac(grant))
    }

    /// Whether a row grants what it says. One that does not is reported.
    #[must_use]
    pub fn verify(&self, row: &StoredGrant) -> bool {
        let key = self.0.key.get();
        let is_right = key.is_some_and(|key| key.is_mac_of(row.mac.as_deref(), &row.grant));
        if !is_right {
            self.report(row.table, row.id.clone(), row.partner_id);
        }
        is_right
    }

    /// Refuses to change a row that does not grant what it says: its new HMAC would make it valid.
    ///
    /// # Errors
    /// [`InvalidMac`], after the report of the row.
    pub fn check(&self, row: &StoredGrant) -> Result<(), InvalidMac> {
        if self.verify(row) {
            return Ok(());
        }
        Err(InvalidMac {
            table: row.table,
            id: row.id.clone(),
        })
    }

    /// Logs a row that grants nothing, and keeps it for [`Self::take_forged`]: once, however many requests
    /// name it.
    pub fn report(&self, table: &'static str, subject: String, partner_id: Option<PartnerId>) {
        let mut forged = self.0.forged.lock();
        let row = ForgedGrant {
            table,
            subject,
            partner_id,
        };
        if forged.len() < MAX_FORGED && !forged.contains(&row) {
            tracing::error!(
                row.table = table,
                row.id = row.subject,
                "row has no valid HMAC, or does not decode, and grants nothing: it was written without the service"
            );
            forged.insert(row);
        }
    }

    /// The rows without a valid HMAC that were read since the last call, each once.
    #[must_use]
    pub fn take_forged(&self) -> BTreeSet<ForgedGrant> {
        std::mem::take(&mut *self.0.forged.lock())
    }
}

/// A stored row that grants access.
#[derive(Debug, Clone)]
pub struct StoredGrant {
    pub table: &'static str,
    /// Subject of its audit entries.
    pub id: String,
    /// The partner whom it concerns; `None` for a row of operators.
    pub partner_id: Option<PartnerId>,
    pub grant: Grant,
    pub mac: Option<Vec<u8>>,
}

/// The row of a token.
pub(super) fn of_token(
    token_id: OperatorTokenId,
    (operator, hash): (&OperatorName, &OperatorTokenHash),
    expires_at: Option<time::OffsetDateTime>,
    session_id: Option<OperatorSessionId>,
    activation: Option<&[u8]>,
) -> Grant {
    let session_id = session_id.map(OperatorSessionId::as_uuid);
    Grant::of_token(&TokenGrant {
        token_id: token_id.as_uuid().as_bytes(),
        operator,
        hash: hash.as_bytes(),
        expires_at,
        session_id: session_id.as_ref().map(Uuid::as_bytes),
        activation,
    })
}

/// The row of a session.
pub(super) fn stored_session(
    session_id: OperatorSessionId,
    (operator, hash): (&OperatorName, &OperatorTokenHash),
    expires_at: time::OffsetDateTime,
    authentication: SessionAuthentication,
    mac: Option<Vec<u8>>,
) -> StoredGrant {
    StoredGrant {
        table: "operator_sessions",
        id: session_id.to_string(),
        partner_id: None,
        grant: Grant::of_session(
            session_id.as_uuid().as_bytes(),
            operator,
            hash,
            expires_at,
            authentication,
        ),
        mac,
    }
}
