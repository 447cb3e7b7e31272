//! Exit codes of the commands, and suggestions for mistyped arguments.

use vouchsafe_cli::ExitStatus;

use crate::commands::{run, run_error, utf8, words};
use vouchsafe_test_harness::{free_address, unique};

#[tokio::test]
async fn commands_exit_with_documented_code() {
    use ExitStatus::{Failure, Success, Unreachable, Usage};
    let unused_url = format!("http://{}", free_address());
    let unused_database = format!("postgres://somebody:secret@{}/orders", free_address());
    let partner = unique("Partner");
    for (expected, line) in [
        (Success, "partner list"),
        (Success, "call GET /wallets"),
        (Success, "--help"),
        (Failure, &format!("partner show {partner}")),
        (Failure, "call GET /orders/ord_0"),
        (Failure, "actors --operator-token wrong"),
        (Usage, "partnr list"),
        (Usage, &format!("partner set {partner}")),
        (Usage, "order show ptn_0"),
        (Usage, "order list --limit 101"),
        (Usage, "call POST /orders no-object"),
        (Usage, "actors --admin-url nowhere"),
        (Usage, "verify --database-url nonsense"),
        (Usage, "--config /nowhere/at/all actors"),
        (Unreachable, &format!("actors --admin-url {unused_url}")),
        (Unreachable, &format!("call GET /wallets --url {unused_url}")),
        (Unreachable, &format!("verify --database-url {unused_database}")),
        (Unreachable, "--data-dir /nowhere verify"),
    ] {
        let output = run(&words(line));
        let stderr = utf8(&output.stderr);
        assert_eq!(
            output.status.code(),
            Some(expected.code().into()),
            "{line}: {stderr}"
        );
        assert!(!stderr.contains("secret"), "{stderr}");
        assert!(stderr.matches("(os error ").count() <= 1, "{line}: {stderr}");
    }
}

/// The help and the operations page show the same table.
#[test]
fn exit_codes_are_documented() {
    let help = utf8(&run(&["--help"]).stdout);
    let page = include_str!("../../docs/operations/commands.md");
    for exit in ExitStatus::ALL {
        let (code, meaning) = (exit.code(), exit.meaning());
        assert!(help.contains(&format!("\n  {code}  {meaning}\n")), "{help}");
        assert!(page.contains(&format!("\n| {code} | {meaning}")), "{code}");
    }
}

#[tokio::test]
async fn mistyped_argument_suggests_correction() {
    for (line, expected) in [
        ("partnr list", "'partner'"),
        ("partner lits", "'list'"),
        ("partner list --jsn", "'--json'"),
        ("order list --status PENDNG", "'PENDING'"),
        ("product put p --rout vendor", "'--route'"),
        (
            "partner set nobody --limit order=1/60",
            "the classes are orders, general",
        ),
        (
            "partner show ord_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f",
            "this is the ID of an order; `vouchsafe partner list`",
        ),
        (
            "wallet top-up ptn_12 USD 1 --reference r",
            "expected ptn_ followed by 32 lower-case hex digits; `vouchsafe partner list`",
        ),
        ("partner show nobody", "`vouchsafe partner list`"),
        (
            "credential revoke nothing",
            "`vouchsafe credential list PARTNER_ID`",
        ),
        ("order show nothing", "`vouchsafe order list`"),
        ("product show nothing", "`vouchsafe product list`"),
        (
            "category put c --name C --parent nothing",
            "`vouchsafe category list`",
        ),
        ("actors --operator-token wrong", "--operator-token"),
    ] {
        let stderr = run_error(&words(line));
        assert!(stderr.contains(expected), "{line}: {stderr}");
    }
}
