//! Detection of voucher codes used as references in vendor records.
//!
//! References are stored and shown, codes must not be. The code index finds codes among the references, with
//! and without a PIN. A code that shares its text with an earlier one is found by that one.

use vouchsafe_domain::catalogue::current::CurrentCatalogue;
use vouchsafe_domain::reconciliation::RecordLine;
use vouchsafe_security::vault::blind_index::BlindIndex;
use vouchsafe_security::vault::code::{CodeParts, VoucherCode};
use vouchsafe_store::Stock;
use vouchsafe_store::StoreError;
use vouchsafe_store::keyring::Keyring;

/// The index of the first line whose reference is a code of ours, from 0.
///
/// # Errors
/// [`StoreError`] if the database fails.
pub async fn first_leaked_code(
    catalogue: &CurrentCatalogue,
    keyring: &Keyring,
    stock: &Stock,
    lines: &[RecordLine],
) -> Result<Option<usize>, StoreError> {
    let (catalogue, vault) = (catalogue.current(), keyring.vault());
    let index = |line: &RecordLine| {
        let product = catalogue.get(&line.terms.product_id)?;
        let parts = CodeParts {
            code: line.reference.as_str(),
            ..CodeParts::default()
        };
        let code = VoucherCode::parse(parts).ok()?;
        // The blind index finds a code without a PIN that has no code index yet.
        Some([
            vault.code_index(product.code_scope(), &code),
            vault.blind_index(product.code_scope(), &code),
        ])
    };
    let indexes: Vec<_> = lines.iter().map(index).collect();
    let candidates = indexes.iter().flatten().flatten().copied().collect();
    let codes = stock.find_known_codes(candidates).await?;
    let is_code = |indexes: &Option<[BlindIndex; 2]>| {
        indexes.is_some_and(|indexes| indexes.iter().any(|index| codes.contains(index)))
    };
    Ok(indexes.iter().position(is_code))
}
