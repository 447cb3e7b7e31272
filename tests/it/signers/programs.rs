//! External programs: working directory, environment, and the error for a missing program.

use std::ffi::OsStr;
use std::io::{ErrorKind, Write as _};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use vouchsafe_test_harness::Instance;

pub(crate) const DOCS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/partner");

/// Package to install for each program; all are required.
const REQUIRED_PACKAGES: [(&str, &str); 7] = [
    ("bash", "bash"),
    ("curl", "curl"),
    ("openssl", "openssl"),
    ("python3", "Python 3"),
    ("node", "Node.js 18 or later"),
    ("java", "a JDK, 17 or later"),
    ("javac", "a JDK, 17 or later"),
];

/// A working directory as the documentation assumes it: with `docs`, and with `.vouchsafe` if a service runs.
pub(crate) struct DocsWorkspace {
    directory: TempDir,
}

impl DocsWorkspace {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let docs = Path::new(DOCS).parent().unwrap();
        std::os::unix::fs::symlink(docs, directory.path().join("docs")).unwrap();
        Self { directory }
    }

    /// A workspace with a service's credentials and the header file that the quick start creates from them.
    pub(crate) fn with_service(service: &Instance) -> Self {
        let workspace = Self::new();
        std::fs::copy(
            service.data_dir().join("sandbox-partner.json"),
            workspace.path().join("credentials.json"),
        )
        .unwrap();
        let headers = format!(
            "X-API-Key: {}\nX-API-Secret: {}\n",
            workspace.api_key(),
            workspace.api_secret()
        );
        std::fs::write(workspace.path().join("partner.headers"), headers).unwrap();
        workspace
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    pub(crate) fn api_key(&self) -> String {
        self.credential("api_key")
    }

    pub(crate) fn api_secret(&self) -> String {
        self.credential("api_secret")
    }

    fn credential(&self, field: &str) -> String {
        let text = std::fs::read_to_string(self.path().join("credentials.json")).unwrap();
        let partner: Value = serde_json::from_str(&text).unwrap();
        partner[field].as_str().unwrap().to_owned()
    }

    /// Runs a program, asserts success and returns its standard output.
    pub(crate) fn run(&self, program: &str, arguments: &[impl AsRef<OsStr>], input: &str) -> String {
        self.run_with(program, arguments, &[], input)
    }

    /// Like [`Self::run`], with more environment variables.
    pub(crate) fn run_with(
        &self,
        program: &str,
        arguments: &[impl AsRef<OsStr>],
        variables: &[(&str, &str)],
        input: &str,
    ) -> String {
        let output = self.output(program, arguments, variables, input);
        let printed = String::from_utf8(output.stdout).unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success(),
            "{program}: {}\n{stderr}{printed}",
            output.status
        );
        printed
    }

    /// Returns whether a program accepts its input: exits with 0, or with 1 and one line that says why. A
    /// stack trace fails the test.
    pub(crate) fn is_accepted(
        &self,
        program: &str,
        arguments: &[impl AsRef<OsStr>],
        variables: &[(&str, &str)],
        input: &str,
    ) -> bool {
        let output = self.output(program, arguments, variables, input);
        let stderr = String::from_utf8_lossy(&output.stderr);
        match output.status.code() {
            Some(0) => true,
            Some(1) if stderr.lines().count() == 1 => false,
            _ => panic!("{program}: {}\n{stderr}", output.status),
        }
    }

    fn output(
        &self,
        program: &str,
        arguments: &[impl AsRef<OsStr>],
        variables: &[(&str, &str)],
        input: &str,
    ) -> Output {
        let mut command = Command::new(program);
        command
            .args(arguments)
            .current_dir(self.path())
            .envs(variables.iter().copied());
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command
            .spawn()
            .unwrap_or_else(|error| panic!("{}", spawn_error(program, &error)));
        let mut stdin = child.stdin.take().unwrap();
        // A program that exits without reading its input reports the reason itself.
        drop(stdin.write_all(input.as_bytes()));
        drop(stdin);
        child.wait_with_output().unwrap()
    }
}

fn spawn_error(program: &str, error: &std::io::Error) -> String {
    let package = REQUIRED_PACKAGES.iter().find(|(name, _)| *name == program);
    match (error.kind(), package) {
        (ErrorKind::NotFound, Some((_, package))) => {
            format!("{program} is missing: install {package}, or run ./dev test, which does")
        }
        _ => format!("cannot run {program}: {error}"),
    }
}

#[test]
#[should_panic(expected = "openssl is missing: install openssl, or run ./dev test, which does")]
fn missing_program_is_named() {
    panic!("{}", spawn_error("openssl", &ErrorKind::NotFound.into()));
}
