//! What a thief of a copy of the database has: no secret in plain text, and nothing by which a guess can be
//! checked.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use hyper::Method;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use vouchsafe_test_harness::{
    Instance, Operator, ServiceDatabase, expect_success, id_of, order_body, unique,
};

use crate::payouts::{payout_body, request_payout};

/// Secrets with so few possible values that they can be tried: a code of ten digits, a PIN of four, the
/// number of an account.
const CODE: &str = "4000123987";
const PIN: &str = "7391";
const IBAN: &str = "DE89370400440532013000";

const VENDOR_PASSWORD: &str = "vendor-password-1";

/// The columns that `docs/security.md` explains, `table.column`.
fn explained_columns() -> BTreeSet<String> {
    let page = include_str!("../../docs/security.md");
    let (_, section) = page.split_once("## A copy of the database").unwrap();
    let section = section.split("\n## ").next().unwrap();
    let rows = section.lines().filter(|line| line.starts_with("| `"));
    rows.flat_map(|line| line.split('|').nth(1).unwrap().split(','))
        .map(|column| column.trim().trim_matches('`').to_owned())
        .collect()
}

#[tokio::test]
async fn every_column_with_bytes_is_explained() {
    let service = Instance::start();
    let mut database = ServiceDatabase::of(&service).await;
    let columns = database
        .texts(
            "SELECT table_name || '.' || column_name
               FROM information_schema.columns
              WHERE table_schema = $1
                AND data_type = 'bytea'
                AND table_name NOT LIKE 'delivery_attempts_%'",
            "public",
        )
        .await;
    assert_eq!(columns.into_iter().collect::<BTreeSet<_>>(), explained_columns());
}

/// All rows of all tables as text, in lower case and without the dashes of ids. Bytes are hexadecimal digits.
async fn dump(database: &mut ServiceDatabase) -> String {
    let tables = database
        .texts(
            "SELECT quote_ident(table_name) FROM information_schema.tables WHERE table_schema = $1",
            "public",
        )
        .await;
    assert!(tables.len() > 30, "{tables:?}");
    let mut dump = String::new();
    for table in tables {
        let rows = format!("SELECT row_data::text FROM public.{table} row_data");
        dump += &database.all_texts(rows).await.join("\n");
    }
    dump.to_lowercase().replace('-', "")
}

fn comparable(text: &str) -> String {
    text.to_lowercase().replace('-', "")
}

fn sha256(text: &str) -> String {
    hex::encode(Sha256::digest(text))
}

/// Sells the code, requests a payout to the account and stores the vendor's password. Returns the bodies that
/// had a secret.
async fn use_secrets(service: &Instance) -> Vec<String> {
    let mut operator = Operator::of(service);
    let sale = operator.add_stocked_product(0).await;
    let csv = format!("code,pin\n{CODE},{PIN}\n");
    operator.import_csv(&sale, csv.clone()).await;
    let mut partner = operator.add_partner("1000").await;
    let order = expect_success(&partner.send(&unique("key"), &order_body(&sale, 1)).await, 201);
    assert_eq!(partner.count_codes(&id_of(&order)).await, 1);
    let payout = payout_body("30");
    assert!(payout.contains(IBAN));
    expect_success(&request_payout(&mut partner, &unique("key"), &payout).await, 202);
    let vendor = json!({ "adapter": "http", "url": "https://vendor.test", "credentials": VENDOR_PASSWORD })
        .to_string();
    let response = operator
        .call_json(Method::PUT, "/admin/v1/vendors/copied-vendor", vendor.clone())
        .await;
    expect_success(&response, 201);
    vec![csv, payout, vendor]
}

#[tokio::test]
async fn copy_of_the_database_confirms_no_guess() {
    let service = Instance::start();
    let bodies = use_secrets(&service).await;
    let mut database = ServiceDatabase::of(&service).await;
    let dump = dump(&mut database).await;
    for secret in [CODE, IBAN, VENDOR_PASSWORD] {
        for form in [
            secret.to_owned(),
            hex::encode(secret),
            STANDARD_NO_PAD.encode(secret),
        ] {
            assert!(!dump.contains(&comparable(&form)), "{secret} as {form}");
        }
    }
    // A hash without a key confirms a guess: of the secret, or of a request that has it.
    let guesses = [CODE, PIN, IBAN, VENDOR_PASSWORD]
        .map(ToOwned::to_owned)
        .into_iter();
    let pairs = [
        format!("{CODE}{PIN}"),
        format!("{CODE}:{PIN}"),
        format!("{CODE},{PIN}"),
        format!("{CODE}\0{PIN}"),
    ];
    for guess in guesses.chain(pairs).chain(bodies) {
        let hash = sha256(&guess);
        // Half of the hash is enough: an id has 16 bytes.
        assert!(!dump.contains(&hash[..32]), "hash of {guess}");
    }
    // The search finds the hashes that are there: those of random secrets.
    let file = std::fs::read_to_string(service.data_dir().join("sandbox-partner.json")).unwrap();
    let file: Value = serde_json::from_str(&file).unwrap();
    let secret = file["api_secret"].as_str().unwrap();
    assert!(dump.contains(&sha256(secret)));
    assert!(!dump.contains(&comparable(secret)));
}
