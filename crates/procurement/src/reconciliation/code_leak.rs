//! Detection of voucher codes used as references in vendor records.
//!
//! References are stored and shown, codes must not be. The blind index finds codes among the references, except codes
//! with a PIN, whose index depends on it.

use vouchsafe_domain::catalogue::current::CurrentCatalogue;
use vouchsafe_domain::reconciliation::RecordLine;
use vouchsafe_security::vault::blind_index::BlindIndex;
use vouchsafe_security::vault::code::{CodeParts, VoucherCode};
use vouchsafe_store::Stock;
use vouchsafe_store::keyring::Keyring;

/// The index of the first line whose reference is a code of ours, from 0.
///
/// # Errors
/// [`sqlx::Error`] if the database fails.
pub async fn first_leaked_code(
    catalogue: &CurrentCatalogue,
    keyring: &Keyring,
    stock: &Stock,
    lines: &[RecordLine],
) -> Result<Option<usize>, sqlx::Error> {
    let (catalogue, vault) = (catalogue.current(), keyring.vault());
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
    let candidates = indexes.iter().flatten().copied().collect();
    let codes = stock.find_known_codes(candidates).await?;
    let is_code = |index: &Option<BlindIndex>| index.is_some_and(|index| codes.contains(&index));
    Ok(indexes.iter().position(is_code))
}
