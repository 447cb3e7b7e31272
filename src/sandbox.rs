//! The sandbox: what its first start puts into an empty database, and how it greets who started it.
//!
//! Each step may be repeated: a start that is cut off half-way is simply followed by another. The partner comes last, so
//! that a database with a partner in it is one that has been filled.

use std::io::Write as _;
use std::path::Path;

use anyhow::Context as _;
use serde::Deserialize;
use vouchsafe_actors::domain::ids::PartnerId;
use vouchsafe_actors::domain::ledger::LedgerKind;
use vouchsafe_actors::domain::money::{Amount, Currency};
use vouchsafe_actors::flows::{TopUp, top_up};

use crate::access::allowlist::Allowlist;
use crate::access::credential::{Minted, mint};
use crate::access::environment::Environment;
use crate::access::idempotency::{Endpoint, fingerprint, scoped_hash};
use crate::secrets;
use crate::service::Service;
use crate::settings::ServeSettings;
use crate::store::{By, Partner};

mod catalogue;

/// Where the credentials of the seeded partner are kept, readable by their owner alone.
pub const PARTNER_FILE: &str = "sandbox-partner.json";

/// Who may use them: this machine.
const LOOPBACK: [&str; 2] = ["127.0.0.0/8", "::1/128"];

/// What the seeded partner begins with: currency and amount.
const WALLETS: [(&str, &str); 4] = [
    ("USD", "100000.00"),
    ("EUR", "50000.00"),
    ("JPY", "5000000"),
    ("KWD", "10000.000"),
];

/// What the file of the seeded partner says; the secrets are left to who needs them.
#[derive(Debug, Deserialize)]
struct SeededPartner {
    partner_id: PartnerId,
}

/// Fills an empty database; a filled one is left as it is.
///
/// # Errors
/// When the database does not answer, or the partner's file cannot be written or read.
pub async fn seed_if_new(service: &Service, data_dir: &Path) -> anyhow::Result<()> {
    let file = data_dir.join(PARTNER_FILE);
    if service.store.list_partners(None, 1).await?.is_empty() {
        catalogue::seed(service).await?;
        seed_partner(service, &file).await?;
    }
    if let Ok(text) = std::fs::read_to_string(&file) {
        let seeded: SeededPartner =
            serde_json::from_str(&text).with_context(|| format!("read {}", file.display()))?;
        // A data directory may have been used with another database before.
        if service.store.find_partner(seeded.partner_id).await?.is_some() {
            fill_wallets(service, seeded.partner_id).await?;
        }
    }
    Ok(())
}

/// The file is written first: credentials that nobody can read would be of no use.
async fn seed_partner(service: &Service, file: &Path) -> anyhow::Result<()> {
    let now = service.clock.now();
    let partner = Partner::new("Sandbox partner".to_owned(), Allowlist::parse(&LOOPBACK)?, now);
    let minted = mint(service.environment, getrandom::fill).context("draw credentials")?;
    let credential = minted.kept(partner.partner_id, now);
    let Minted { api_key, api_secret } = minted;
    let text = serde_json::json!({
        "partner_id": partner.partner_id,
        "api_key": api_key.to_string(),
        "api_secret": api_secret.expose(),
    });
    secrets::write_private(file, &format!("{text:#}\n"))?;
    service
        .store
        .create_partner(partner.clone(), Some(credential.clone()), By::service())
        .await?;
    service.register.replace_partner(partner.access());
    service.register.put_credential(credential);
    Ok(())
}

/// Booked under a reference, so once.
async fn fill_wallets(service: &Service, partner_id: PartnerId) -> anyhow::Result<()> {
    for (currency, amount) in WALLETS {
        let currency: Currency = currency.parse()?;
        let reference = "sandbox-seed".to_owned();
        let command = TopUp {
            partner_id,
            money: Amount::parse(amount, currency)?.of(currency),
            kind: LedgerKind::TopUp,
            key: scoped_hash(partner_id, Endpoint::TopUp, &format!("{currency}:{reference}")),
            fingerprint: fingerprint("seed", currency.as_str(), amount.as_bytes()),
            reference,
            booked_by: By::service().into(),
        };
        if let Err(error) = top_up(&service.engine, command).await {
            // An operator may have used the reference for something else; the sandbox serves all the same.
            tracing::warn!(%error, %currency, "the sandbox partner's wallet is not filled");
        }
    }
    Ok(())
}

/// Tells who started the sandbox where it is, and how an order is placed by whoever has the seeded credentials.
#[allow(clippy::print_stdout)] // this is what the terminal is for
pub fn greet(settings: &ServeSettings, data_dir: &Path) {
    let base_url = format!("http://{}/api/v1", settings.http_addr);
    let mut lines = vec![
        format!("Vouchsafe {} is ready.", settings.environment),
        format!("  partners    {base_url}"),
        format!("  docs        http://{}/docs", settings.http_addr),
        format!(
            "  operators   http://{}/admin/v1, metrics at /metrics",
            settings.admin_addr
        ),
        format!("  data        {}", data_dir.display()),
    ];
    if settings.environment == Environment::Sandbox && data_dir.join(PARTNER_FILE).exists() {
        lines.extend([
            String::new(),
            "Place an order:".to_owned(),
            format!("  {}", first_order(&base_url, data_dir)),
            String::new(),
        ]);
    }
    // Nobody may be reading any more; the service serves all the same.
    drop(writeln!(std::io::stdout(), "{}", lines.join("\n")));
}

/// A command that can be pasted into any shell of this machine.
fn first_order(base_url: &str, data_dir: &Path) -> String {
    let program = std::env::current_exe().map_or_else(|_| "vouchsafe".to_owned(), |path| typed(&path));
    let order = r#"{"items":[{"product_id":"sbx-instant","denomination":25,"quantity":1}]}"#;
    format!(
        "{program} --data-dir {} call --url {base_url} POST /orders '{order}'",
        typed(data_dir)
    )
}

/// A path as it can be typed anywhere on this machine.
fn typed(path: &Path) -> String {
    let text = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let text = text.display().to_string();
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"/._-".contains(&b);
    if text.bytes().all(plain) {
        text
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_can_be_pasted() {
        for (path, expected) in [
            ("/opt/vouchsafe", "/opt/vouchsafe"),
            ("/opt/my data", "'/opt/my data'"),
            ("/opt/o'clock", r"'/opt/o'\''clock'"),
        ] {
            assert_eq!(typed(Path::new(path)), expected);
        }
        let here = std::env::current_dir().unwrap();
        assert_eq!(
            typed(Path::new("data")),
            typed(&here.join("data")),
            "from anywhere"
        );
    }
}
