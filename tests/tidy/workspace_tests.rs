//! Workspaces that break a rule on crates.

use std::fs;

use super::workspace::{Workspace, generated_block};

/// Packages by name, each with its normal and its dev-dependencies.
fn workspace(packages: &[(&str, &[&str], &[&str])]) -> Workspace {
    let dependency = |kind: &str, name: &str| {
        format!(r#"{{"name": "{name}", "kind": {kind}, "features": [], "uses_default_features": false}}"#)
    };
    let packages: Vec<_> = packages
        .iter()
        .map(|(name, normal, dev)| {
            let normal = normal.iter().map(|name| dependency("null", name));
            let dev = dev.iter().map(|name| dependency("\"dev\"", name));
            let dependencies: Vec<_> = normal.chain(dev).collect();
            let dependencies = dependencies.join(", ");
            format!(
                r#"{{"name": "{name}", "manifest_path": "/none/Cargo.toml", "targets": [],
                     "dependencies": [{dependencies}]}}"#
            )
        })
        .collect();
    Workspace::parse(&format!(r#"{{"packages": [{}]}}"#, packages.join(", ")))
}

#[test]
fn circular_dev_dependency_is_found() {
    let found = workspace(&[
        ("engine", &["domain"], &["simulation", "serde"]),
        ("simulation", &["memory"], &[]),
        ("memory", &["engine"], &["engine"]),
        ("domain", &[], &[]),
    ]);
    let expected = "engine: its dev-dependency simulation depends on engine";
    let found = found.violations();
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].starts_with(expected), "{found:?}");

    let found = workspace(&[("engine", &[], &["engine"])]).violations();
    assert!(found[0].starts_with("engine: its dev-dependency engine depends on engine"));

    // Each crate's tests may use the other crate, as long as no build needs both ways.
    let mutual = workspace(&[("left", &[], &["right"]), ("right", &[], &["left"])]);
    assert_eq!(mutual.violations(), Vec::<String>::new());
}

#[test]
fn forbidden_feature_is_found() {
    for (features, defaults, count) in [
        ("", false, 0),
        ("\"http2\"", false, 1),
        ("", true, 1),
        ("\"macros\"", false, 0),
    ] {
        let dependency = format!(
            r#"{{"name": "actix-web", "kind": null, "features": [{features}], "uses_default_features": {defaults}}}"#
        );
        let found = Workspace::parse(&format!(
            r#"{{"packages": [{{"name": "server", "manifest_path": "/none/Cargo.toml", "targets": [], "dependencies": [{dependency}]}}]}}"#
        ))
        .violations();
        assert_eq!(found.len(), count, "{features} {defaults}: {found:?}");
    }
}

#[test]
fn forbidden_dependency_is_found() {
    let rejected = [
        (
            "vouchsafe-actors",
            "sqlx",
            "the engine knows neither SQL nor HTTP",
        ),
        ("vouchsafe-domain", "tokio", "the domain is plain data"),
        ("vouchsafe-security", "sqlx", "independent of their transport"),
        ("vouchsafe-store", "actix-web", "the store knows no HTTP"),
        ("vouchsafe-load", "vouchsafe", "only the public HTTP interface"),
        (
            "vouchsafe-api-client",
            "vouchsafe",
            "only the public HTTP interface",
        ),
    ];
    for (user, used, expected) in rejected {
        for (normal, dev) in [(&[used][..], &[][..]), (&[], &[used])] {
            let found = workspace(&[(user, normal, dev), ("vouchsafe", &["sqlx"], &[])]).violations();
            assert_eq!(found.len(), 1, "{user} -> {used} gave {found:?}");
            assert!(found[0].contains(expected), "{user} -> {used} gave {found:?}");
        }
    }
    let allowed = workspace(&[
        ("vouchsafe-load", &["sqlx", "vouchsafe-api-client"], &[]),
        ("vouchsafe-api-client", &[], &[]),
        ("vouchsafe", &[], &["vouchsafe-load"]),
    ]);
    assert_eq!(allowed.violations(), Vec::<String>::new());
}

#[test]
fn long_crate_is_found() {
    let violations = |package: &str, lines: usize| {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir_all(directory.path().join("src/module")).unwrap();
        let text = "fn f() {\n    // Comment.\n\n}\n".repeat(lines / 2);
        fs::write(directory.path().join("src/module/deep.rs"), text).unwrap();
        let manifest = directory.path().join("Cargo.toml");
        let metadata = format!(
            r#"{{"packages": [{{"name": "{package}", "manifest_path": {manifest:?}, "targets": [], "dependencies": []}}]}}"#
        );
        Workspace::parse(&metadata).violations()
    };
    for (package, limit) in [("vouchsafe", 20_000), ("vouchsafe-store", 15_000)] {
        assert_eq!(violations(package, limit), Vec::<String>::new());
        let expected = format!(
            "{package}: {} lines of code exceed the limit of {limit}; split the crate",
            limit + 2
        );
        assert_eq!(violations(package, limit + 2), [expected]);
    }
}

#[test]
fn dependency_table_lists_each_crate_above_what_it_uses() {
    let workspace = workspace(&[
        ("vouchsafe-domain", &["serde"], &["proptest"]),
        ("vouchsafe-load", &[], &[]),
        ("vouchsafe-actors", &["vouchsafe-domain"], &["vouchsafe-domain"]),
        (
            "vouchsafe",
            &["vouchsafe-actors", "vouchsafe-domain"],
            &["vouchsafe-load"],
        ),
    ]);
    assert_eq!(
        workspace.dependency_table(),
        "| Crate | Depends on | Its tests also use |\n\
         |---|---|---|\n\
         | `vouchsafe` | `actors`, `domain` | `load` |\n\
         | `actors` | `domain` |  |\n\
         | `domain` |  |  |\n\
         | `load` |  |  |\n"
    );
}

#[test]
fn generated_block_is_between_its_markers() {
    let page = "# A\n\n<!-- crates: begin, generated -->\n| a |\n<!-- crates: end -->\n\nText\n";
    assert_eq!(&page[generated_block(page, "crates").unwrap()], "| a |\n");
    assert_eq!(generated_block(page, "modules"), None);
    assert_eq!(generated_block("<!-- crates: begin -->\n| a |\n", "crates"), None);
}
