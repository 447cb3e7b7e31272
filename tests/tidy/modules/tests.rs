//! Small crates with and without circles.

use std::fs;

use super::{ModuleTree, impure_references, module_circles};

fn read_crate(files: &[(&str, &str)]) -> ModuleTree {
    let directory = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = directory.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    ModuleTree::read("example", &directory.path().join("lib.rs"), directory.path())
}

#[track_caller]
fn assert_circles(files: &[(&str, &str)], expected: &[&str]) {
    assert_eq!(module_circles(&read_crate(files)), expected);
}

#[test]
fn circle_through_imports_is_found() {
    assert_circles(
        &[
            ("lib.rs", "mod a;\nmod b;\n"),
            (
                "a.rs",
                "use crate::b::{self, Second};\npub struct First(Second);\n",
            ),
            ("b.rs", "\nuse super::a::First as Other;\npub struct Second;\n"),
        ],
        &["example: a -> b (a.rs:1 uses b; a.rs:1 uses b::Second), b -> a (b.rs:2 uses a::First)"],
    );
}

#[test]
fn circle_of_three_modules_is_found_once() {
    assert_circles(
        &[(
            "lib.rs",
            "mod a { use crate::b::B; pub struct A; }
             mod b { use crate::c::C; pub struct B; }
             mod c { use crate::a::A; pub struct C; }
             mod d { use crate::a::A; pub struct D; }",
        )],
        &["example: a -> b (lib.rs:1 uses b::B), b -> c (lib.rs:2 uses c::C), c -> a (lib.rs:3 uses a::A)"],
    );
}

#[test]
fn circle_through_paths_in_code_is_found() {
    let ends = [
        "fn f() -> u8 { crate::b::g() }",
        "fn f() { let b = <u8 as super::b::T>::new(); }",
        "impl From<super::b::S> for u8 {}",
        "fn f() { println!(\"{}\", crate::b::g()); }",
        "fn f() { select! { _ = async { vec![super::b::g()] } => {} } }",
        "macro_rules! m { () => { $crate::b::g() } }",
        "macro_rules! m { () => { use crate::{b::g, c}; } }",
        "struct S { #[serde(with = \"crate::b::g\")] field: u8 }",
        "#[derive(crate::b::D)] struct S;",
        "fn f() { use crate::*; b::g() }",
        "use crate as root; fn f() { root::b::g() }",
    ];
    for end in ends {
        let a = format!("{end}\npub fn from_a() {{}}\n");
        let found = module_circles(&read_crate(&[
            ("lib.rs", "mod a;\nmod b;\nmod c;\n"),
            ("a.rs", a.as_str()),
            (
                "b.rs",
                "pub fn g() { super::a::from_a() }\npub struct S;\npub trait T {}\n",
            ),
            ("c.rs", ""),
        ]));
        assert_eq!(found.len(), 1, "{end} gave {found:?}");
        assert!(
            found[0].contains("a -> b (a.rs:1 uses b::"),
            "{end} gave {found:?}"
        );
    }
}

#[test]
fn reexported_name_counts_for_its_module() {
    let through = |import: &str| {
        let a = format!("{import}\npub struct First(Second);\n");
        module_circles(&read_crate(&[
            ("lib.rs", "mod parent;\n"),
            (
                "parent.rs",
                "mod a;\nmod b;\npub use b::*;\npub use self::a::First;\n",
            ),
            ("parent/a.rs", a.as_str()),
            ("parent/b.rs", "use super::First;\npub struct Second(First);\n"),
        ]))
    };
    for import in [
        "use super::Second;",
        "use crate::parent::Second;",
        "use super::*;",
    ] {
        let found = through(import);
        assert_eq!(found.len(), 1, "{import} gave {found:?}");
        assert!(
            found[0].starts_with("example::parent: a -> b (parent/a.rs:"),
            "{found:?}"
        );
        assert!(
            found[0].ends_with("uses parent::b::Second), b -> a (parent/b.rs:1 uses parent::a::First)"),
            "{found:?}"
        );
    }
    assert_eq!(through("struct Second;"), Vec::<String>::new());
}

#[test]
fn name_imported_through_sibling_counts_for_sibling() {
    assert_circles(
        &[(
            "lib.rs",
            "mod a { pub use crate::b::B; }
             mod b { pub struct B; }
             mod c { use crate::a::B; pub struct C; }
             mod d { use crate::a::B; }",
        )],
        &[],
    );
    assert_circles(
        &[(
            "lib.rs",
            "mod a { pub use crate::b::B; use crate::c::C; }
             mod b { pub struct B; }
             mod c { use crate::a::B; pub struct C; }",
        )],
        &["example: a -> c (lib.rs:1 uses c::C), c -> a (lib.rs:3 uses b::B)"],
    );
}

#[test]
fn nested_circle_is_found_at_its_level() {
    assert_circles(
        &[
            ("lib.rs", "mod outer;\nmod other;\n"),
            ("other.rs", "use crate::outer::x::deep::f;\n"),
            ("outer/mod.rs", "mod x;\nmod y;\n"),
            ("outer/x.rs", "pub mod deep;\n"),
            ("outer/x/deep.rs", "use super::super::y;\npub fn f() {}\n"),
            ("outer/y.rs", "fn g() { super::x::deep::f() }\n"),
        ],
        &[
            "example::outer: x -> y (outer/x/deep.rs:1 uses outer::y), y -> x (outer/y.rs:1 uses outer::x::deep::f)",
        ],
    );
}

#[test]
fn circle_in_moved_file_is_found() {
    assert_circles(
        &[
            (
                "lib.rs",
                "mod inline { #[path = \"elsewhere.rs\"] mod moved; }\n#[path = \"far/away.rs\"]\nmod near;\n",
            ),
            (
                "inline/elsewhere.rs",
                "use crate::near::child::f;\npub fn g() {}\n",
            ),
            ("far/away.rs", "pub mod child;\n"),
            ("far/child.rs", "pub fn f() { crate::inline::moved::g() }\n"),
        ],
        &[
            "example: inline -> near (inline/elsewhere.rs:1 uses near::child::f), \
             near -> inline (far/child.rs:1 uses inline::moved::g)",
        ],
    );
}

#[test]
fn tree_without_circle_passes() {
    assert_circles(
        &[
            (
                "lib.rs",
                "mod a;\nmod b;\nuse a::child::Child;\npub(crate) struct Root(Child);\n",
            ),
            // Parent and child use each other; so do a module and the crate root.
            (
                "a.rs",
                "pub mod child;\npub struct Parent(child::Child);\nuse crate::Root;\n",
            ),
            (
                "a/child.rs",
                "use super::Parent;\npub struct Child(Box<Parent>, crate::Root);\n",
            ),
            // Names of other crates, of local variables and of text are no references.
            (
                "b.rs",
                "use crate::a::Parent;\nuse time::Date;\npub(in crate::b) fn f(a: u8) { g(\"crate::a\", ::b::c()) }\n",
            ),
        ],
        &[],
    );
}

#[test]
fn unit_tests_are_ignored() {
    let b = ("b.rs", "use crate::a::A;\npub struct B;\n");
    let test_code = [
        "#[cfg(test)]\nmod tests { use crate::b::B; }",
        "#[cfg(test)]\nmod missing_file;",
        "#[cfg(all(test, feature = \"x\"))]\nuse crate::b::B;",
        "impl A { #[cfg(test)] fn f() -> crate::b::B {} }",
    ];
    for code in test_code {
        let a = format!("{code}\npub struct A;\n");
        assert_circles(&[("lib.rs", "mod a;\nmod b;\n"), ("a.rs", &a), b], &[]);
    }
    let shipped = "#[cfg(any(test, feature = \"testing\"))]\nuse crate::b::B;\npub struct A;\n";
    let tree = read_crate(&[("lib.rs", "mod a;\nmod b;\n"), ("a.rs", shipped), b]);
    assert_eq!(module_circles(&tree).len(), 1);
}

#[test]
fn pure_core_uses_only_itself_and_other_crates() {
    let violations = |core: &str| {
        let tree = read_crate(&[
            ("lib.rs", "mod actor;\nmod core;\n"),
            ("actor.rs", "pub struct Actor;\n"),
            ("core.rs", core),
        ]);
        impure_references(&tree, &["core"])
    };
    let pure = "use vouchsafe_domain::Money;\nmod part { use super::Core; use std::time::Instant; }\npub struct Core;\n";
    assert_eq!(violations(pure), Vec::<String>::new());
    assert_eq!(
        violations("\nuse super::actor::Actor;\n"),
        ["core.rs:2: a pure core must not use super::actor::Actor"]
    );
    for impure in [
        "use tokio::sync;",
        "fn f() { std::time::Instant::now(); }",
        "mod a { use rand::Rng; }",
    ] {
        assert_eq!(violations(impure).len(), 1, "{impure}");
    }
    let tree = read_crate(&[("lib.rs", "")]);
    assert_eq!(
        impure_references(&tree, &["core"]),
        ["core: no such module in example"]
    );
}
