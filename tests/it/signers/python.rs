//! Python virtual environment with the packages of `requirements.txt`, created once per version of that file.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use sha2::{Digest as _, Sha256};

/// Must be installed; `./dev test` installs it.
const INTERPRETER: &str = "python3";

pub(super) struct Python {
    home: PathBuf,
    /// Directory of the suite, with its `requirements.txt` and its modules.
    suite: &'static str,
}

impl Python {
    /// Returns the environment of the suite in this directory and creates it if it is missing.
    pub(super) fn of(suite: &'static str) -> Self {
        let requirements = format!("{suite}/requirements.txt");
        let hash = hex::encode(Sha256::digest(fs::read(&requirements).unwrap()));
        let target_dir = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let home = target_dir.join(format!("python-{}", &hash[..16]));
        // Another test may be creating it.
        let lock = File::create(target_dir.join("python.lock")).unwrap();
        lock.lock().unwrap();
        let complete = home.join("complete");
        if !complete.exists() {
            install(&home, &requirements);
            fs::write(complete, "").unwrap();
        }
        Self { home, suite }
    }

    pub(super) fn program_path(&self, name: &str) -> PathBuf {
        self.home.join("bin").join(name)
    }

    /// Returns a command for a program of the environment. It runs in this directory and can import this suite's modules.
    pub(super) fn program(&self, name: &str, directory: &Path) -> Command {
        let mut command = Command::new(self.program_path(name));
        command
            .current_dir(directory)
            .env("PYTHONPATH", self.suite)
            .env("PYTHONDONTWRITEBYTECODE", "1");
        command
    }
}

fn install(home: &Path, requirements: &str) {
    let mut environment = Command::new(INTERPRETER);
    environment.args(["-m", "venv", "--clear"]).arg(home);
    run(
        environment,
        "Python 3.10 or later with its venv module is required: install python3 and python3-venv, or run ./dev test",
    );
    let mut install = Command::new(home.join("bin/python"));
    install.args([
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "-r",
        requirements,
    ]);
    let message =
        format!("cannot install the Python packages of {requirements}: check that PyPI is reachable");
    run(install, &message);
}

fn run(mut command: Command, message: &str) {
    let output = command
        .output()
        .unwrap_or_else(|error| panic!("{message} ({error})"));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{message}\n{stderr}");
}
