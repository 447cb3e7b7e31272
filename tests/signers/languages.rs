//! The signers: how the one of each language is run.

use std::time::UNIX_EPOCH;

use crate::programs::{DOCS, DocsWorkspace};
use crate::rust_signer;

/// A signer that is ready to run.
pub(crate) struct Language<'a> {
    pub(crate) name: &'static str,
    workspace: &'a DocsWorkspace,
    invocation: Invocation,
}

/// How a signer is run.
enum Invocation {
    /// As a program, with these arguments before its own.
    Program(&'static str, Vec<String>),
    /// The one in Rust is compiled into the tests: cargo would build an example for some of its commands only.
    Function,
}

/// All five. What has to be compiled is compiled once.
pub(crate) fn languages(place: &DocsWorkspace) -> [Language<'_>; 5] {
    let source = |file: &str| format!("{DOCS}/signers/{file}");
    let classes = place.path().to_str().unwrap().to_owned();
    place.run("javac", &["-d", &classes, &source("Sign.java")], "");
    let run = |name, program, arguments: &[String]| Language {
        name,
        workspace: place,
        invocation: Invocation::Program(program, arguments.to_vec()),
    };
    [
        run("shell", "bash", &[source("sign.sh")]),
        run("python", "python3", &[source("sign.py")]),
        run("javascript", "node", &[source("sign.mjs")]),
        run("java", "java", &["-cp".to_owned(), classes, "Sign".to_owned()]),
        Language {
            name: "rust",
            workspace: place,
            invocation: Invocation::Function,
        },
    ]
}

impl Language<'_> {
    /// The two header lines: of this time, or of now.
    pub(crate) fn sign(
        &self,
        secret: &str,
        request: [&str; 2],
        timestamp: Option<&str>,
        body: &str,
    ) -> String {
        match &self.invocation {
            Invocation::Program(program, arguments) => {
                let own = arguments.iter().map(String::as_str);
                let all: Vec<&str> = own.chain(request).chain(timestamp).collect();
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
