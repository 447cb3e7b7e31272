//! Do the sources keep the rules of the house?
//!
//! Read as text, without a compiler: which part may import what, how long a file may be, and what may not be written at
//! all. Each rule is shown to fire, on a snippet that breaks it.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test ends where it cannot go on"
)]

#[path = "tidy/named_tests.rs"]
mod named_tests;
#[path = "tidy/rules.rs"]
mod rules;
#[path = "tidy/text.rs"]
mod text;

use std::fs;
use std::path::Path;

use crate::rules::{MAX_LINES, FORBIDDEN_WORDS, violations};

#[test]
fn sources_follow_rules() {
    let mut found = Vec::new();
    let mut seen = 0;
    for_each_file(Path::new(env!("CARGO_MANIFEST_DIR")), "", &mut |path, text| {
        seen += 1;
        found.extend(violations(path, text));
    });
    assert!(
        seen > 20,
        "only {seen} files were found: the rules were not asked"
    );
    assert!(
        found.is_empty(),
        "{} breaches:\n{}",
        found.len(),
        found.join("\n")
    );
}

#[test]
fn tests_named_in_reliability_page_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(root.join("docs/reliability.md")).unwrap();
    let mut missing = named_tests::named_tests(&page);
    assert!(missing.len() > 50, "only {} tests are named", missing.len());
    missing.push(("cancellation", "a_test_that_nobody_wrote"));
    for_each_file(root, "", &mut |path, text| {
        missing.retain(|test| !named_tests::is_defined_in(path, text, *test));
    });
    assert_eq!(missing, [("cancellation", "a_test_that_nobody_wrote")]);
}

#[test]
fn each_rule_rejects_its_snippet() {
    let long = format!("//! Doc.\n{}", "fn f() {}\n".repeat(MAX_LINES));
    let nowhere = format!("//! {}{} later", FORBIDDEN_WORDS[0].0, FORBIDDEN_WORDS[0].1);
    let broken = [
        (
            "actors/src/flows/place_order.rs",
            "use sqlx::query;",
            "neither SQL nor HTTP",
        ),
        (
            "actors/src/supervisor/respawn.rs",
            "type C = reqwest::Client;",
            "neither SQL nor HTTP",
        ),
        (
            "actors/src/flows/place_order.rs",
            "use actix::Message;",
            "actix is for shells",
        ),
        (
            "actors/src/journal/lane.rs",
            "fn f() { actix_rt::spawn(g()) }",
            "actix is for shells",
        ),
        (
            "actors/src/journal/lane.rs",
            "fn f(a: &Addr<A>) {}",
            "flows and journal",
        ),
        (
            "actors/src/inventory/shelf.rs",
            "fn f() { let now = Instant::now(); }",
            "a pure core",
        ),
        (
            "actors/src/wallet/purse.rs",
            "use super::hold::WalletHold;",
            "a pure core",
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
        ("actors/src/delivery/schedule.rs", "use rand::Rng;", "a pure core"),
        (
            "actors/src/domain/order.rs",
            "use crate::wallet::Purse;",
            "imports crate::wallet",
        ),
        (
            "actors/src/domain/order/stage.rs",
            "use super::super::super::wallet::Purse;",
            "the domain imports",
        ),
        (
            "src/store/orders.rs",
            "use crate::http::Page;",
            "the store knows no HTTP",
        ),
        (
            "src/store/orders.rs",
            "use actix_web::HttpResponse;",
            "the store knows no HTTP",
        ),
        (
            "src/http/orders.rs",
            "fn f(wallet: actix::Addr<Wallet>) {}",
            "never an actor",
        ),
        (
            "src/access/allowlist.rs",
            "use actix_web::HttpRequest;",
            "access decides",
        ),
        (
            "src/procurement/http/mod.rs",
            "use crate::store::PgStore;",
            "an adapter knows its vendor",
        ),
        (
            "load/src/signer.rs",
            "use vouchsafe::access::sign;",
            "the wire alone",
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
        ("src/config.rs", long.as_str(), "lines"),
        ("docs/performance.md", nowhere.as_str(), "appears"),
    ];
    for (path, text, expected) in broken {
        let text = if path.ends_with(".rs") && !text.starts_with("//!") {
            format!("//! Doc.\n{text}")
        } else {
            text.to_owned()
        };
        let found = violations(path, &text);
        assert!(
            found.iter().any(|breach| breach.contains(expected)),
            "{path}: {text:.80} gave {found:?}"
        );
    }
    assert!(violations("src/config.rs", "use std::fs;\n")[0].contains("does not begin with //!"));
}

#[test]
fn allowed_snippets_pass() {
    let fine = [
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
        ("load/src/main.rs", "use vouchsafe_load::signer;"),
        (
            "load/Cargo.toml",
            "[package]\nname = \"vouchsafe-load\"\n[dependencies]\nsqlx.workspace = true\n",
        ),
        (
            "src/config.rs",
            "fn f<'a>(c: char) -> bool { c == '\"' }\nfn g() { h(r#\"dbg!(\"#) }",
        ),
    ];
    for (path, text) in fine {
        let text = if path.ends_with(".rs") {
            format!("//! Doc.\n{text}")
        } else {
            text.to_owned()
        };
        assert_eq!(violations(path, &text), Vec::<String>::new(), "{path}: {text}");
    }
}

/// Every text file of the repository; not what a build or a run leaves, and not the list of locked versions.
fn for_each_file(directory: &Path, prefix: &str, visit: &mut impl FnMut(&str, &str)) {
    let mut entries: Vec<_> = fs::read_dir(directory).unwrap().map(Result::unwrap).collect();
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let name = entry.file_name().into_string().unwrap();
        let path = format!("{prefix}{name}");
        let is_foreign = ["target", "Cargo.lock", "node_modules"].contains(&name.as_str());
        if is_foreign || (name.starts_with('.') && name != ".ci" && name != ".gitignore") {
            continue;
        }
        if entry.file_type().unwrap().is_dir() {
            for_each_file(&entry.path(), &format!("{path}/"), visit);
        } else if let Ok(text) = fs::read_to_string(entry.path()) {
            visit(&path, &text);
        }
    }
}
