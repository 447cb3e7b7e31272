//! Exit codes of the commands, and suggestions for mistyped arguments.

use vouchsafe::cli::ExitStatus;

use crate::commands::{run, run_error, utf8};
use vouchsafe_test_harness::{free_address, unique};

#[tokio::test]
async fn commands_exit_with_documented_code() {
    let unused_url = format!("http://{}", free_address());
    let unused_database = format!("postgres://somebody:secret@{}/orders", free_address());
    let partner = unique("Partner");
    for (expected, arguments) in [
        (ExitStatus::Success, vec!["partner", "list"]),
        (ExitStatus::Success, vec!["call", "GET", "/wallets"]),
        (ExitStatus::Success, vec!["--help"]),
        (ExitStatus::Failure, vec!["partner", "show", &partner]),
        (ExitStatus::Failure, vec!["call", "GET", "/orders/ord_0"]),
        (ExitStatus::Failure, vec!["actors", "--operator-token", "wrong"]),
        (ExitStatus::Usage, vec!["partnr", "list"]),
        (ExitStatus::Usage, vec!["partner", "set", &partner]),
        (ExitStatus::Usage, vec!["order", "show", "ptn_0"]),
        (ExitStatus::Usage, vec!["order", "list", "--limit", "101"]),
        (ExitStatus::Usage, vec!["call", "POST", "/orders", "no object"]),
        (ExitStatus::Usage, vec!["actors", "--admin-url", "nowhere"]),
        (ExitStatus::Usage, vec!["verify", "--database-url", "nonsense"]),
        (ExitStatus::Usage, vec!["--config", "/nowhere/at/all", "actors"]),
        (
            ExitStatus::Unreachable,
            vec!["actors", "--admin-url", &unused_url],
        ),
        (
            ExitStatus::Unreachable,
            vec!["call", "GET", "/wallets", "--url", &unused_url],
        ),
        (
            ExitStatus::Unreachable,
            vec!["verify", "--database-url", &unused_database],
        ),
        (ExitStatus::Unreachable, vec!["--data-dir", "/nowhere", "verify"]),
    ] {
        let output = run(&arguments);
        let stderr = utf8(&output.stderr);
        assert_eq!(
            output.status.code(),
            Some(expected.code().into()),
            "{arguments:?}: {stderr}"
        );
        assert!(!stderr.contains("secret"), "{stderr}");
    }
}

/// The help and the operations page show the same table.
#[test]
fn exit_codes_are_documented() {
    let help = utf8(&run(&["--help"]).stdout);
    let page = include_str!("../../docs/operations.md");
    for exit in ExitStatus::ALL {
        let (code, meaning) = (exit.code(), exit.meaning());
        assert!(help.contains(&format!("\n  {code}  {meaning}\n")), "{help}");
        assert!(page.contains(&format!("\n| {code} | {meaning}")), "{code}");
    }
}

#[tokio::test]
async fn mistyped_argument_suggests_correction() {
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
            "this is the ID of an order; `vouchsafe partner list`",
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
        let stderr = run_error(&arguments);
        assert!(stderr.contains(expected), "{arguments:?}: {stderr}");
    }
}
