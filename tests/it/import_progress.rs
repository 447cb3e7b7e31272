//! Is a long import seen to move on a terminal, and nowhere else?

use std::fs::File;
use std::io::Read as _;
use std::process::{Command, Stdio};

use rustix::fs::{Mode, OFlags, open};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use crate::commands::{run, utf8};
use crate::support::{Operator, PROGRAM, Sale, shared};

/// How many vouchers: some parts of a file. It is read long before the service has them all.
const VOUCHERS: usize = 5_000;

#[tokio::test]
async fn an_import_shows_how_far_it_is_to_people_alone() {
    let sale = Operator::of(shared()).add_stocked_product(0).await;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("vouchers.ndjson");
    let lines = (0..VOUCHERS).map(|n| format!("{{\"code\":\"{}-{n}\"}}\n", sale.product_id));
    std::fs::write(&path, lines.collect::<String>()).unwrap();
    let import = import_arguments(path.to_str().unwrap(), &sale);

    let shown = terminal_output(&import);
    assert!(
        shown.contains(" KiB of ") && shown.contains(" to go"),
        "{shown:?}"
    );
    assert_eq!(terminal_output(&[&import[..], &["--json"]].concat()), "");
    let output = run(&import);
    assert_eq!(
        (utf8(&output.stdout), utf8(&output.stderr)),
        (
            format!("imported 0, duplicates {VOUCHERS}, rejected 0\n"),
            String::new()
        )
    );
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

/// What a command that succeeds shows on a terminal as its standard error.
fn terminal_output(arguments: &[&str]) -> String {
    let here = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&here).unwrap();
    unlockpt(&here).unwrap();
    let name = ptsname(&here, Vec::new()).unwrap();
    let there = open(name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap();
    let mut command = Command::new(PROGRAM);
    command
        .arg("--data-dir")
        .arg(shared().data_dir())
        .args(arguments)
        .env("VOUCHSAFE_ADMIN_URL", shared().admin_url())
        .env("TERM", "xterm")
        .env_remove("VOUCHSAFE_OPERATOR_TOKEN")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(there);
    let mut child = command.spawn().unwrap();
    // The terminal ends when nobody holds its other side, which this one does too.
    drop(command);
    let mut shown = Vec::new();
    let mut here = File::from(here);
    let mut part = [0; 1024];
    // Linux ends a terminal with an error.
    while let Ok(read @ 1..) = here.read(&mut part) {
        shown.extend(&part[..read]);
    }
    assert!(child.wait().unwrap().success());
    utf8(&shown)
}
