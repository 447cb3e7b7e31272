//! Does a command end with the code that is documented, and does it help who mistyped something?

use vouchsafe::cli::Exit;

use crate::commands::{complaint, run, text};
use crate::support::{free_addresses, unique};

#[tokio::test]
async fn a_command_ends_with_the_documented_code() {
    let nobody = format!("http://{}", free_addresses()[0]);
    let no_database = format!("postgres://somebody:secret@{}/orders", free_addresses()[0]);
    let partner = unique("Partner");
    for (expected, arguments) in [
        (Exit::Done, vec!["partner", "list"]),
        (Exit::Done, vec!["call", "GET", "/wallets"]),
        (Exit::Done, vec!["--help"]),
        (Exit::Refused, vec!["partner", "show", &partner]),
        (Exit::Refused, vec!["call", "GET", "/orders/ord_0"]),
        (Exit::Refused, vec!["actors", "--operator-token", "wrong"]),
        (Exit::Misused, vec!["partnr", "list"]),
        (Exit::Misused, vec!["partner", "set", &partner]),
        (Exit::Misused, vec!["order", "show", "ptn_0"]),
        (Exit::Misused, vec!["order", "list", "--limit", "101"]),
        (Exit::Misused, vec!["call", "POST", "/orders", "no object"]),
        (Exit::Misused, vec!["actors", "--admin-url", "nowhere"]),
        (Exit::Misused, vec!["verify", "--database-url", "nonsense"]),
        (Exit::Misused, vec!["--config", "/nowhere/at/all", "actors"]),
        (Exit::Unreachable, vec!["actors", "--admin-url", &nobody]),
        (
            Exit::Unreachable,
            vec!["call", "GET", "/wallets", "--url", &nobody],
        ),
        (Exit::Unreachable, vec!["verify", "--database-url", &no_database]),
        (Exit::Unreachable, vec!["--data-dir", "/nowhere", "verify"]),
    ] {
        let output = run(&arguments);
        let said = text(&output.stderr);
        assert_eq!(
            output.status.code(),
            Some(expected.code().into()),
            "{arguments:?}: {said}"
        );
        assert!(!said.contains("secret"), "{said}");
    }
}

/// The help and the page for operators show the one table.
#[test]
fn the_codes_are_documented() {
    let help = text(&run(&["--help"]).stdout);
    let page = include_str!("../../docs/operations.md");
    for exit in Exit::ALL {
        let (code, meaning) = (exit.code(), exit.meaning());
        assert!(help.contains(&format!("\n  {code}  {meaning}\n")), "{help}");
        assert!(page.contains(&format!("\n| {code} | {meaning}")), "{code}");
    }
}

#[tokio::test]
async fn who_mistypes_is_told_what_was_meant_or_where_to_look() {
    for (arguments, expected) in [
        (vec!["partnr", "list"], "'partner'"),
        (vec!["partner", "lits"], "'list'"),
        (vec!["partner", "list", "--jsn"], "'--json'"),
        (vec!["order", "list", "--status", "PENDNG"], "'PENDING'"),
        (vec!["product", "put", "p", "--rout", "vendor"], "'--route'"),
        (
            vec!["partner", "set", "nobody", "--limit", "order=1/60"],
            "the classes are orders, general",
        ),
        (
            vec!["partner", "show", "ord_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f"],
            "this is the id of an order; `vouchsafe partner list`",
        ),
        (
            vec!["wallet", "top-up", "ptn_12", "USD", "1", "--reference", "r"],
            "expected ptn_ followed by 32 lower-case hex digits; `vouchsafe partner list`",
        ),
        (vec!["partner", "show", "nobody"], "`vouchsafe partner list`"),
        (
            vec!["credential", "revoke", "nothing"],
            "`vouchsafe credential list PARTNER_ID`",
        ),
        (vec!["order", "show", "nothing"], "`vouchsafe order list`"),
        (vec!["product", "show", "nothing"], "`vouchsafe product list`"),
        (
            vec!["category", "put", "c", "--name", "C", "--parent", "nothing"],
            "`vouchsafe category list`",
        ),
        (vec!["actors", "--operator-token", "wrong"], "--operator-token"),
    ] {
        let said = complaint(&arguments);
        assert!(said.contains(expected), "{arguments:?}: {said}");
    }
}
