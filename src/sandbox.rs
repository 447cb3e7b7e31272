//! Sandbox seed data and the banner printed at startup.
//!
//! Each step is idempotent, so an interrupted seeding is repeated at the next start. The partner is created
//! last: a database with a partner is completely seeded.

use std::io::Write as _;
use std::path::Path;
use vouchsafe_private_postgres::{SANDBOX_PARTNER_FILE, write_private};

use anyhow::Context as _;
use serde::Deserialize;
use vouchsafe_actors::flows::{TopUp, top_up};
use vouchsafe_domain::allowlist::Allowlist;
use vouchsafe_domain::ids::PartnerId;
use vouchsafe_domain::ledger::LedgerKind;
use vouchsafe_domain::money::{Amount, Currency};
use vouchsafe_domain::operator::BUILT_IN_ADMIN;
use vouchsafe_domain::partner::{Partner, PartnerFilter};
use vouchsafe_security::credential::{ApiKeyPair, generate_key_pair};
use vouchsafe_security::environment::Environment;
use vouchsafe_security::idempotency::{IdempotencyScope, scoped_hash};
use vouchsafe_store::AuditActor;

use crate::service::JobState;
use crate::settings::ServeSettings;

mod catalogue;

pub(crate) use catalogue::LOST_RESPONSE_PRODUCTS;

/// Allowlist of the seeded partner.
const LOOPBACK: [&str; 2] = ["127.0.0.0/8", "::1/128"];

/// Opening balances of the seeded partner: currency and amount.
const OPENING_BALANCES: [(&str, &str); 4] = [
    ("USD", "100000.00"),
    ("EUR", "50000.00"),
    ("JPY", "5000000"),
    ("KWD", "10000.000"),
];

/// The part of the credentials file that seeding needs.
#[derive(Debug, Deserialize)]
struct SeededPartner {
    partner_id: PartnerId,
}

/// Seeds an empty database. Any other stays as it is, but for a product that has a new name.
pub(crate) async fn seed_if_new(service: &JobState, data_dir: &Path) -> anyhow::Result<()> {
    let file = data_dir.join(SANDBOX_PARTNER_FILE);
    if service
        .store
        .partners
        .list(PartnerFilter::default(), None, 1)
        .await?
        .is_empty()
    {
        catalogue::seed(service).await?;
        seed_partner(service, &file).await?;
    } else {
        catalogue::add_renamed(service).await?;
    }
    if let Ok(text) = std::fs::read_to_string(&file) {
        let seeded: SeededPartner =
            serde_json::from_str(&text).with_context(|| format!("read {}", file.display()))?;
        // The data directory may have been used with another database.
        if service.store.partners.find(seeded.partner_id).await?.is_some() {
            credit_wallets(service, seeded.partner_id).await?;
        }
    }
    Ok(())
}

/// Writes the file before the row: credentials without a file would be lost.
async fn seed_partner(service: &JobState, file: &Path) -> anyhow::Result<()> {
    let now = service.clock.now();
    let partner = Partner::new("Sandbox partner".to_owned(), Allowlist::parse(&LOOPBACK)?, now);
    let key_pair = generate_key_pair(service.environment, getrandom::fill).context("generate credentials")?;
    let credential = key_pair.to_credential(partner.partner_id, now);
    let ApiKeyPair { api_key, api_secret } = key_pair;
    let text = serde_json::json!({
        "partner_id": partner.partner_id,
        "api_key": api_key.to_string(),
        "api_secret": api_secret.expose(),
    });
    write_private(file, &format!("{text:#}\n")).with_context(|| format!("write {}", file.display()))?;
    service
        .store
        .partners
        .create(partner.clone(), Some(credential.clone()), AuditActor::service())
        .await?;
    service.registry.upsert_partner((&partner).into());
    service.registry.upsert_credential(credential);
    Ok(())
}

/// The reference makes each top-up idempotent.
async fn credit_wallets(service: &JobState, partner_id: PartnerId) -> anyhow::Result<()> {
    for (currency, amount) in OPENING_BALANCES {
        let currency: Currency = currency.parse()?;
        let reference = "sandbox-seed".to_owned();
        let command = TopUp {
            partner_id,
            money: Amount::parse(amount, currency)?.of(currency),
            kind: LedgerKind::TopUp,
            key: scoped_hash(
                partner_id,
                IdempotencyScope::TopUp,
                &format!("{currency}:{reference}"),
            ),
            fingerprint: service.keyring.vault().fingerprints().fingerprint(
                "seed",
                currency.as_str(),
                amount.as_bytes(),
            ),
            reference,
            operator: AuditActor::service(),
        };
        if let Err(error) = top_up(&service.engine, command).await {
            // An operator may have used the reference otherwise; the sandbox works without the money.
            tracing::warn!(error.message = %error, %currency, "cannot top up the sandbox partner's wallet");
        }
    }
    Ok(())
}

/// Prints the addresses and, in the sandbox, commands that place an order and sign in to the console.
#[allow(clippy::print_stdout)] // the banner is for the terminal
pub(crate) fn print_banner(settings: &ServeSettings, data_dir: &Path) {
    let (partners, operators) = (
        settings.partner_listener().url(),
        settings.operator_listener().url(),
    );
    let base_url = format!("{partners}/api/v1");
    let mut lines = vec![
        format!("Vouchsafe {} is ready.", settings.environment),
        format!("  partners    {base_url}"),
        format!("  docs        {partners}/docs"),
        format!("  operators   {operators}/admin/v1, metrics at /metrics"),
        format!("  console     {operators}/"),
        format!("  data        {}", data_dir.display()),
    ];
    if settings.environment == Environment::Sandbox && data_dir.join(SANDBOX_PARTNER_FILE).exists() {
        lines.extend([
            String::new(),
            "Place an order:".to_owned(),
            format!("  {}", example_order_command(&base_url, data_dir)),
            String::new(),
            "Sign in to the console: open the link that this prints".to_owned(),
            format!("  {}", sign_in_command(&operators, data_dir)),
            String::new(),
        ]);
    }
    // Standard output may be closed.
    drop(writeln!(std::io::stdout(), "{}", lines.join("\n")));
}

/// A command to paste into any shell on this machine.
fn example_order_command(base_url: &str, data_dir: &Path) -> String {
    let order = r#"{"items":[{"product_id":"sbx-instant","denomination":25,"quantity":1}]}"#;
    format!(
        "{} call --url {base_url} POST /orders '{order}'",
        program(data_dir)
    )
}

fn sign_in_command(operators: &str, data_dir: &Path) -> String {
    let admin = BUILT_IN_ADMIN;
    format!(
        "{} operator sign-in {admin} --admin-url {operators}",
        program(data_dir)
    )
}

fn program(data_dir: &Path) -> String {
    let program =
        std::env::current_exe().map_or_else(|_| "vouchsafe".to_owned(), |path| shell_quote_path(&path));
    format!("{program} --data-dir {}", shell_quote_path(data_dir))
}

/// An absolute path, quoted for the shell.
fn shell_quote_path(path: &Path) -> String {
    let text = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let text = text.display().to_string();
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"/._-".contains(&b);
    if text.bytes().all(is_plain) {
        text
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_is_quoted_for_the_shell() {
        for (path, expected) in [
            ("/opt/vouchsafe", "/opt/vouchsafe"),
            ("/opt/my data", "'/opt/my data'"),
            ("/opt/o'clock", r"'/opt/o'\''clock'"),
        ] {
            assert_eq!(shell_quote_path(Path::new(path)), expected);
        }
        let here = std::env::current_dir().unwrap();
        assert_eq!(
            shell_quote_path(Path::new("data")),
            shell_quote_path(&here.join("data")),
            "absolute"
        );
    }
}
