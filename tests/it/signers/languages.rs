//! Signers by language and how to run them.

use std::time::UNIX_EPOCH;

use super::programs::{DOCS, DocsWorkspace};
use super::rust_signer;

pub(crate) struct Language<'a> {
    pub(crate) name: &'static str,
    workspace: &'a DocsWorkspace,
    invocation: Invocation,
}

enum Invocation {
    /// A program and its leading arguments.
    Program(&'static str, Vec<String>),
    /// The Rust signer is compiled into the tests: not every cargo command builds the example.
    Function,
}

/// Returns the signers of all five languages, compiled where necessary. Each is a symbolic link in another
/// directory than the working directory.
pub(crate) fn languages(workspace: &DocsWorkspace) -> [Language<'_>; 6] {
    let links = workspace.path().join("linked");
    std::fs::create_dir(&links).unwrap();
    let source = |file: &str| {
        let link = links.join(file);
        std::os::unix::fs::symlink(format!("{DOCS}/signers/{file}"), &link).unwrap();
        link.to_str().unwrap().to_owned()
    };
    let javascript = source("sign.mjs");
    let unresolved = ["--preserve-symlinks", "--preserve-symlinks-main", &javascript].map(str::to_owned);
    let classes = workspace.path().to_str().unwrap().to_owned();
    workspace.run("javac", &["-d", &classes, &source("Sign.java")], "");
    let run = |name, program, arguments: &[String]| Language {
        name,
        workspace,
        invocation: Invocation::Program(program, arguments.to_vec()),
    };
    [
        run("shell", "bash", &[source("sign.sh")]),
        run("python", "python3", &[source("sign.py")]),
        run("javascript", "node", &[javascript]),
        run("javascript-unresolved", "node", &unresolved),
        run("java", "java", &["-cp".to_owned(), classes, "Sign".to_owned()]),
        Language {
            name: "rust",
            workspace,
            invocation: Invocation::Function,
        },
    ]
}

impl Language<'_> {
    /// Returns the two header lines, signed at this timestamp or now.
    pub(crate) fn sign(
        &self,
        secret: &str,
        request: [&str; 2],
        timestamp: Option<&str>,
        body: &str,
    ) -> String {
        match &self.invocation {
            Invocation::Program(program, arguments) => {
                let leading = arguments.iter().map(String::as_str);
                let all: Vec<&str> = leading.chain(request).chain(timestamp).collect();
                let secret = [("VOUCHSAFE_API_SECRET", secret)];
                self.workspace.run_with(program, &all, &secret, body)
            }
            Invocation::Function => {
                let timestamp = timestamp.map_or_else(now_s, ToOwned::to_owned);
                let [method, path] = request;
                let signature = rust_signer::sign(secret, &timestamp, method, path, body.as_bytes()).unwrap();
                format!("X-Timestamp: {timestamp}\nX-Signature: {signature}\n")
            }
        }
    }
}

fn now_s() -> String {
    UNIX_EPOCH.elapsed().unwrap().as_secs().to_string()
}
