//! Parsing of arguments, settings files and the environment.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;

use vouchsafe_security::environment::Environment;

use super::*;

fn read(arguments: &[&str]) -> Result<Cli, SettingsError> {
    let arguments: Vec<OsString> = ["vouchsafe"]
        .iter()
        .chain(arguments)
        .map(OsString::from)
        .collect();
    Cli::read(&arguments)
}

#[test]
fn defaults_serve_the_sandbox_on_loopback() {
    let cli = read(&[]).unwrap();
    let settings = cli.serve_settings();
    assert_eq!(settings.environment, Environment::Sandbox);
    assert!(settings.http_addr.ip().is_loopback() && settings.admin_addr.ip().is_loopback());
    assert!(settings.trusted_proxies.is_empty());
}

#[test]
fn flag_overrides_file_and_file_overrides_default() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    writeln!(
        file,
        "# settings\nVOUCHSAFE_HTTP_ADDR = 127.0.0.1:9000\nVOUCHSAFE_ADMIN_ADDR=127.0.0.1:9001"
    )
    .unwrap();
    let path = file.path().to_str().unwrap();
    let cli = read(&["--config", path, "serve", "--http-addr", "127.0.0.1:9999"]).unwrap();
    assert_eq!(cli.serve_settings().http_addr.port(), 9999);
    assert_eq!(cli.serve_settings().admin_addr.port(), 9001);
}

#[test]
fn settings_before_and_after_serve_are_equivalent() {
    let before = ["--environment", "production", "--lanes", "7", "serve"];
    let after = ["serve", "--environment", "production", "--lanes", "7"];
    let both = ["--environment", "production", "serve", "--lanes", "7"];
    let without_serve = ["--environment", "production", "--lanes", "7"];
    for arguments in [&before[..], &after, &both, &without_serve] {
        let cli = read(arguments).unwrap();
        let settings = cli.serve_settings();
        assert_eq!(
            (settings.environment, settings.lanes),
            (Environment::Production, 7),
            "{arguments:?}"
        );
    }
    let named = read(&["--data-dir", "serve", "--lanes", "7", "serve"]).unwrap();
    assert_eq!(named.data_dir, Path::new("serve"));
    assert_eq!(named.serve_settings().lanes, 7);
    assert!(
        read(&["--lanes", "7", "serve", "--lanes", "8"]).is_err(),
        "given twice"
    );
}

#[test]
fn json_is_valid_before_and_after_the_subcommand() {
    for arguments in [
        &["--json", "order", "list"][..],
        &["order", "--json", "list"],
        &["order", "list", "--json"],
        &["--json", "verify"],
        &["call", "--json", "GET", "/wallets"],
    ] {
        assert!(read(arguments).unwrap().json, "{arguments:?}");
    }
    for arguments in [
        &["--json"][..],
        &["serve", "--json"],
        &["--json", "completions", "bash"],
    ] {
        let error = read(arguments).unwrap_err().to_string();
        assert!(error.contains("--log-format json"), "{arguments:?}: {error}");
    }
}

#[test]
fn usage_in_an_error_is_that_of_the_help() {
    for (arguments, usage) in [
        (
            &["--data-dir", "d", "order", "list", "--x"][..],
            "vouchsafe order list [OPTIONS]",
        ),
        (
            &["partner", "show", "--json"],
            "vouchsafe partner show [OPTIONS] <PARTNER_ID>",
        ),
        (&["--log", "info", "--x"], "vouchsafe [OPTIONS] [COMMAND]"),
    ] {
        let error = read(arguments).unwrap_err().to_string();
        assert!(error.contains(&format!("Usage: {usage}\n")), "{error}");
    }
}

#[test]
fn unknown_name_in_file_is_rejected() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    writeln!(file, "VOUCHSAFE_HTTP_ADRR=127.0.0.1:9000").unwrap();
    let read = read(&["--config", file.path().to_str().unwrap()]);
    assert!(
        read.unwrap_err()
            .to_string()
            .contains("line 1: unknown setting VOUCHSAFE_HTTP_ADRR")
    );
}

#[test]
fn name_that_is_twice_in_file_is_rejected_with_both_lines() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    let path = file.path().to_str().unwrap().to_owned();
    // A byte order mark, as some editors write it.
    write!(file, "\u{feff}VOUCHSAFE_LANES=7\n\n").unwrap();
    assert!(read(&["--config", &path]).is_ok());
    writeln!(file, "VOUCHSAFE_LANES=8").unwrap();
    let error = read(&["--config", &path]).unwrap_err().to_string();
    assert!(
        error.contains("lines 1 and 3 both set VOUCHSAFE_LANES"),
        "{error}"
    );
}

#[test]
fn settings_file_with_secrets_that_others_can_read_is_warned_of() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    let path = file.path().to_owned();
    let warnings = || read(&["--config", path.to_str().unwrap()]).unwrap().warnings;
    writeln!(file, "VOUCHSAFE_LANES=7").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    assert!(warnings().is_empty(), "it has no secret");
    writeln!(file, "VOUCHSAFE_MASTER_KEY={}", "ab".repeat(32)).unwrap();
    assert!(warnings()[0].contains("chmod 600"), "{:?}", warnings());
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    assert!(warnings().is_empty());
}

#[test]
fn missing_file_is_rejected() {
    assert!(matches!(
        read(&["--config", "/nowhere/at/all"]),
        Err(SettingsError::File { .. })
    ));
}
