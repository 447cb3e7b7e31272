//! Source rules that the compiler does not check: imports per layer, file length, forbidden words, retired names.
//!
//! The sources are read as text. Each rule has a snippet that violates it.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests panic on failure")]

#[path = "tidy/named_tests.rs"]
mod named_tests;
#[path = "tidy/rules.rs"]
mod rules;
#[path = "tidy/text.rs"]
mod text;

use std::fs;
use std::path::Path;

use crate::rules::{FORBIDDEN_WORDS, MAX_LINES, RETIRED_TYPES, violations};

#[test]
fn sources_follow_rules() {
    let mut found = Vec::new();
    let mut file_count = 0;
    for_each_file(Path::new(env!("CARGO_MANIFEST_DIR")), "", &mut |path, text| {
        file_count += 1;
        found.extend(violations(path, text));
    });
    assert!(file_count > 20, "only {file_count} files were found");
    assert!(
        found.is_empty(),
        "{} violations:\n{}",
        found.len(),
        found.join("\n")
    );
}

#[test]
fn tests_named_in_reliability_page_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(root.join("docs/reliability.md")).unwrap();
    let mut missing = named_tests::named_tests(&page);
    assert!(missing.len() > 50, "the page names only {} tests", missing.len());
    missing.push(("cancellation", "a_missing_test"));
    for_each_file(root, "", &mut |path, text| {
        missing.retain(|test| !named_tests::is_defined_in(path, text, *test));
    });
    assert_eq!(missing, [("cancellation", "a_missing_test")]);
}

#[test]
fn each_rule_rejects_its_snippet() {
    let long = format!("//! Doc.\n{}", "fn f() {}\n".repeat(MAX_LINES));
    let forbidden = format!("//! {}{} later", FORBIDDEN_WORDS[0].0, FORBIDDEN_WORDS[0].1);
    let rejected = [
        (
            "actors/src/flows/place_order.rs",
            "use sqlx::query;",
            "must not depend on SQL or HTTP",
        ),
        (
            "actors/src/supervisor/respawn.rs",
            "type C = reqwest::Client;",
            "must not depend on SQL or HTTP",
        ),
        (
            "actors/src/flows/place_order.rs",
            "use actix::Message;",
            "may use actix",
        ),
        (
            "actors/src/journal/lane.rs",
            "fn f() { actix_rt::spawn(g()) }",
            "may use actix",
        ),
        (
            "actors/src/journal/lane.rs",
            "fn f(a: &Addr<A>) {}",
            "only through the engine",
        ),
        (
            "actors/src/inventory/shelf.rs",
            "fn f() { let now = Instant::now(); }",
            "a pure core imports only",
        ),
        (
            "actors/src/wallet/purse.rs",
            "use super::hold::WalletHold;",
            "a pure core imports only",
        ),
        (
            "actors/src/delivery/queue/failing.rs",
            "use super::super::outbox::Outbox;",
            "a pure core imports only",
        ),
        (
            "actors/src/wallet/purse.rs",
            "use crate::journal::Record;",
            "imports crate::journal",
        ),
        (
            "actors/src/delivery/queue.rs",
            "use crate::{domain::Event, store};",
            "imports crate::store",
        ),
        (
            "actors/src/delivery/retry.rs",
            "use rand::Rng;",
            "a pure core imports only",
        ),
        (
            "actors/src/domain/order.rs",
            "use crate::wallet::Purse;",
            "imports crate::wallet",
        ),
        (
            "actors/src/domain/order/stage.rs",
            "use super::super::super::wallet::Purse;",
            "the domain must not import",
        ),
        (
            "src/store/orders.rs",
            "use crate::http::Page;",
            "the store must not depend on HTTP",
        ),
        (
            "src/store/orders.rs",
            "use actix_web::HttpResponse;",
            "the store must not depend on HTTP",
        ),
        (
            "src/http/orders.rs",
            "fn f(wallet: actix::Addr<Wallet>) {}",
            "not actors",
        ),
        (
            "src/access/allowlist.rs",
            "use actix_web::HttpRequest;",
            "access decides",
        ),
        (
            "src/procurement/http/mod.rs",
            "use crate::store::PgStore;",
            "a vendor adapter must not depend",
        ),
        (
            "load/src/client/signer.rs",
            "use vouchsafe::access::sign;",
            "only the public HTTP interface",
        ),
        (
            "load/Cargo.toml",
            "[dependencies]\nvouchsafe-actors.workspace = true\n",
            "depends on vouchsafe-actors",
        ),
        (
            "actors/Cargo.toml",
            "[dependencies]\nactix-web = \"4\"\n",
            "depends on actix-web",
        ),
        ("src/config.rs", "fn f() { todo!() }", "todo!"),
        ("src/config.rs", "fn f() { unimplemented!() }", "unimplemented!"),
        ("src/config.rs", "fn f() { dbg!(1); }", "dbg!"),
        (
            "tests/it/orders.rs",
            "#[test]\n#[ignore = \"slow\"]\nfn f() {}",
            "#[ignore",
        ),
        ("src/config.rs", long.as_str(), "split the file"),
        (
            "src/config.rs",
            "//! Which port is free?\n//!\n//! The first one.",
            "starts with a question",
        ),
        (
            "src/config.rs",
            "//! Which settings\n//! are missing? All.",
            "starts with a question",
        ),
        ("src/vendor/http/mod.rs", "use std::fs;", "use src/procurement/"),
        ("docs/performance.md", forbidden.as_str(), "remove it"),
    ];
    for (path, text, expected) in rejected {
        let text = if path.ends_with(".rs") && !text.starts_with("//!") {
            format!("//! Doc.\n{text}")
        } else {
            text.to_owned()
        };
        let found = violations(path, &text);
        assert!(
            found.iter().any(|violation| violation.contains(expected)),
            "{path}: {text:.80} gave {found:?}"
        );
    }
    assert!(violations("src/config.rs", "use std::fs;\n")[0].contains("starts without a //! header"));
}

#[test]
fn retired_type_names_are_rejected() {
    for (prefix, names) in RETIRED_TYPES {
        for name in names.split_whitespace() {
            let path = format!("{prefix}example.rs");
            for keyword in ["struct", "enum", "trait", "type"] {
                let found = violations(&path, &format!("//! Doc.\npub(crate) {keyword} {name}<T> {{}}"));
                assert!(
                    found
                        .iter()
                        .any(|violation| violation.contains(&format!("{name} is retired"))),
                    "{path}: {keyword} {name} gave {found:?}"
                );
            }
        }
    }
}

#[test]
fn allowed_snippets_pass() {
    let allowed = [
        (
            "actors/src/flows/place_order.rs",
            "// sqlx would be wrong here\nfn f() { g(\"actix_web\") }",
        ),
        ("actors/src/wallet/actor.rs", "use actix::{Actor, Context};"),
        (
            "actors/src/wallet/purse.rs",
            "use crate::domain::Money;\n#[cfg(test)]\nmod tests {\n    use super::*;\n}",
        ),
        (
            "actors/src/delivery/queue/failing.rs",
            "use super::DeliveryQueue;",
        ),
        (
            "actors/src/delivery/queue/tests/replays.rs",
            "use super::super::*;\nuse rand::Rng;",
        ),
        (
            "actors/src/wallet/purse/tests.rs",
            "use super::*;\nuse rand::Rng;",
        ),
        (
            "actors/src/domain/money.rs",
            "use crate::{domain::{ids, Currency}};\nuse super::ids;",
        ),
        (
            "src/http/mod.rs",
            "use std::net::SocketAddr;\nuse actix_web::web;",
        ),
        ("src/procurement/simulator/routes.rs", "use actix_web::web;"),
        ("src/procurement/service/mod.rs", "use crate::store::PgStore;"),
        ("src/http/orders/request.rs", "struct Line { quantity: u32 }"),
        ("load/src/plot.rs", "struct Point(f64, f64);"),
        (
            "src/config.rs",
            "// struct Told;\nfn told(desk: Books2) { let _ = \"enum Desk\"; }",
        ),
        ("src/config.rs", "//! Settings v1.2 of a server. Why here?"),
        ("load/src/main.rs", "use vouchsafe_load::client::http::signer;"),
        (
            "load/Cargo.toml",
            "[package]\nname = \"vouchsafe-load\"\n[dependencies]\nsqlx.workspace = true\n",
        ),
        (
            "src/config.rs",
            "fn f<'a>(c: char) -> bool { c == '\"' }\nfn g() { h(r#\"dbg!(\"#) }",
        ),
    ];
    for (path, text) in allowed {
        let text = if path.ends_with(".rs") && !text.starts_with("//!") {
            format!("//! Doc.\n{text}")
        } else {
            text.to_owned()
        };
        assert_eq!(violations(path, &text), Vec::<String>::new(), "{path}: {text}");
    }
}

/// Visits each text file of the repository, except build output, installed packages and Cargo.lock.
fn for_each_file(directory: &Path, prefix: &str, visit: &mut impl FnMut(&str, &str)) {
    let mut entries: Vec<_> = fs::read_dir(directory).unwrap().map(Result::unwrap).collect();
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let name = entry.file_name().into_string().unwrap();
        let path = format!("{prefix}{name}");
        let is_generated = ["target", "Cargo.lock", "node_modules"].contains(&name.as_str());
        if is_generated || (name.starts_with('.') && name != ".ci" && name != ".gitignore") {
            continue;
        }
        if entry.file_type().unwrap().is_dir() {
            for_each_file(&entry.path(), &format!("{path}/"), visit);
        } else if let Ok(text) = fs::read_to_string(entry.path()) {
            visit(&path, &text);
        }
    }
}
