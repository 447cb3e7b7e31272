//! Import progress bar: shown on a terminal only.

use std::fs::File;
use std::io::Read as _;
use std::process::{Command, Stdio};

use rustix::fs::{Mode, OFlags, open};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use crate::commands::{run, utf8};
use vouchsafe_test_harness::{Operator, Sale, program, shared};

/// Several blocks: the client reads the file long before the service has imported it.
const VOUCHERS: usize = 5_000;

#[tokio::test]
async fn import_progress_is_shown_on_terminal_only() {
    let sale = Operator::of(shared()).add_stocked_product(0).await;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("vouchers.ndjson");
    let lines = (0..VOUCHERS).map(|n| format!("{{\"code\":\"{}-{n}\"}}\n", sale.product_id));
    std::fs::write(&path, lines.collect::<String>()).unwrap();
    let import = import_arguments(path.to_str().unwrap(), &sale);

    let printed = terminal_output(&import);
    assert!(
        printed.contains(" KiB of ") && printed.contains(" left"),
        "{printed:?}"
    );
    assert_eq!(terminal_output(&[&import[..], &["--json"]].concat()), "");
    let output = run(&import);
    let summary = format!("imported 0, duplicates {VOUCHERS}, rejected 0 ");
    assert!(utf8(&output.stdout).starts_with(&summary));
    assert_eq!(utf8(&output.stderr), "");
}

fn import_arguments<'a>(path: &'a str, sale: &'a Sale) -> [&'a str; 7] {
    let product = &sale.product_id;
    [
        "stock",
        "import",
        path,
        "--product",
        product,
        "--denomination",
        "25",
    ]
}

/// Returns what a successful command prints to a terminal as its standard error.
fn terminal_output(arguments: &[&str]) -> String {
    let primary = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&primary).unwrap();
    unlockpt(&primary).unwrap();
    let name = ptsname(&primary, Vec::new()).unwrap();
    let secondary = open(name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap();
    let mut command = Command::new(program());
    command
        .arg("--data-dir")
        .arg(shared().data_dir())
        .args(arguments)
        .env("VOUCHSAFE_ADMIN_URL", shared().admin_url())
        .env("TERM", "xterm")
        .env_remove("VOUCHSAFE_OPERATOR_TOKEN")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(secondary);
    let mut child = command.spawn().unwrap();
    // The terminal closes when all handles of its other side are closed, including the one in `command`.
    drop(command);
    let mut printed = Vec::new();
    let mut primary = File::from(primary);
    let mut buffer = [0; 1024];
    // On Linux reading from a closed terminal is an error.
    while let Ok(read @ 1..) = primary.read(&mut buffer) {
        printed.extend(&buffer[..read]);
    }
    assert!(child.wait().unwrap().success());
    utf8(&printed)
}
