//! Is a code among what a vendor's books say for references?
//!
//! References are stored and shown, codes are neither. A vendor that mixes them up is found out by the blind index, as far as
//! its codes have no PIN: one with a PIN is not told from a reference.

use std::collections::HashSet;

use super::RecordLine;
use crate::service::Service;
use crate::vault::blind_index::BlindIndex;
use crate::vault::code::{CodeParts, VoucherCode};

/// Which line is the first that has a code of ours for a reference, from 0.
///
/// # Errors
/// [`sqlx::Error`] when the database does not answer.
pub(crate) async fn first_leaked_code(service: &Service, lines: &[RecordLine]) -> Result<Option<usize>, sqlx::Error> {
    let (catalogue, vault) = (service.catalogue.current(), service.keyring.vault());
    let index = |line: &RecordLine| {
        let product = catalogue.get(&line.terms.product_id)?;
        let parts = CodeParts {
            code: line.reference.as_str(),
            ..CodeParts::default()
        };
        let code = VoucherCode::parse(parts).ok()?;
        Some(vault.blind_index(&product.brand, &code))
    };
    let indexes: Vec<_> = lines.iter().map(index).collect();
    let meant = indexes.iter().flatten().copied().collect();
    let codes: HashSet<_> = service.store.find_known_indexes(meant).await?.into_iter().collect();
    let is_code = |index: &Option<BlindIndex>| {
        index
            .as_ref()
            .is_some_and(|index| codes.contains(index.as_bytes().as_slice()))
    };
    Ok(indexes.iter().position(is_code))
}
