//! Running other programs: where they find what they need, and what is said when one is missing.

use std::ffi::OsStr;
use std::io::{ErrorKind, Write as _};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use crate::service::Instance;

/// The partner documentation.
pub(crate) const DOCS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/partner");

/// What has to be installed for a program; a test does without none of them.
const REQUIRED_PACKAGES: [(&str, &str); 8] = [
    ("bash", "bash"),
    ("curl", "curl"),
    ("openssl", "openssl"),
    ("python3", "Python 3"),
    ("node", "Node.js 18 or later"),
    ("npm", "npm"),
    ("java", "a JDK, 17 or later"),
    ("javac", "a JDK, 17 or later"),
];

/// A directory in which programs run, made as the documentation supposes it: `docs` is there, and `.vouchsafe` where a
/// service runs.
pub(crate) struct DocsWorkspace {
    directory: TempDir,
}

impl DocsWorkspace {
    /// Without a service.
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let docs = Path::new(DOCS).parent().unwrap();
        std::os::unix::fs::symlink(docs, directory.path().join("docs")).unwrap();
        Self { directory }
    }

    /// Beside a service, with the headers that the quick start makes of its partner's credentials.
    pub(crate) fn with_service(service: &Instance) -> Self {
        let place = Self::new();
        std::fs::copy(
            service.data_dir().join("sandbox-partner.json"),
            place.path().join("credentials.json"),
        )
        .unwrap();
        let headers = format!(
            "X-API-Key: {}\nX-API-Secret: {}\n",
            place.api_key(),
            place.api_secret()
        );
        std::fs::write(place.path().join("partner.headers"), headers).unwrap();
        place
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

    /// What a program prints that must succeed.
    pub(crate) fn run(&self, program: &str, arguments: &[impl AsRef<OsStr>], input: &str) -> String {
        self.run_with(program, arguments, &[], input)
    }

    /// The same, with further environment variables.
    pub(crate) fn run_with(
        &self,
        program: &str,
        arguments: &[impl AsRef<OsStr>],
        variables: &[(&str, &str)],
        input: &str,
    ) -> String {
        let output = self.output(program, arguments, variables, input);
        let printed = String::from_utf8(output.stdout).unwrap();
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success(),
            "{program}: {}\n{complaint}{printed}",
            output.status
        );
        printed
    }

    /// Whether a program ends as one that succeeds does, or else with 1.
    pub(crate) fn is_successful(
        &self,
        program: &str,
        arguments: &[impl AsRef<OsStr>],
        variables: &[(&str, &str)],
        input: &str,
    ) -> bool {
        let output = self.output(program, arguments, variables, input);
        let complaint = String::from_utf8_lossy(&output.stderr);
        match output.status.code() {
            Some(0) => true,
            Some(1) => false,
            _ => panic!("{program}: {}\n{complaint}", output.status),
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
        // One that ends without reading has said why.
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
        _ => format!("{program} cannot be run: {error}"),
    }
}

#[test]
#[should_panic(expected = "openssl is missing: install openssl, or run ./dev test, which does")]
fn a_missing_program_is_named() {
    panic!("{}", spawn_error("openssl", &ErrorKind::NotFound.into()));
}
