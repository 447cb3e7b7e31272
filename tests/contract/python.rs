//! Python with the programs of `requirements.txt`: made once, and kept as long as the requirements are these.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use sha2::{Digest as _, Sha256};

use crate::HERE;

/// What must be there already. `./dev test` installs it.
const INTERPRETER: &str = "python3";

/// A virtual environment that has all that is required.
pub(crate) struct Python {
    home: PathBuf,
}

impl Python {
    /// The environment, made if it is not there.
    pub(crate) fn get() -> &'static Self {
        static PYTHON: OnceLock<Python> = OnceLock::new();
        PYTHON.get_or_init(Self::create)
    }

    /// Where one of its programs is.
    #[allow(dead_code, reason = "shared with other suites")]
    pub(crate) fn program_path(&self, name: &str) -> PathBuf {
        self.home.join("bin").join(name)
    }

    /// One of its programs, run in this directory. What stands beside this file can be imported.
    pub(crate) fn program(&self, name: &str, directory: &Path) -> Command {
        let mut command = Command::new(self.program_path(name));
        command
            .current_dir(directory)
            .env("PYTHONPATH", HERE)
            .env("PYTHONDONTWRITEBYTECODE", "1");
        command
    }

    fn create() -> Self {
        let requirements = format!("{HERE}/requirements.txt");
        let hash = hex::encode(Sha256::digest(fs::read(&requirements).unwrap()));
        let place = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let home = place.join(format!("python-{}", &hash[..16]));
        // Another run may be making it.
        let lock = File::create(place.join("python.lock")).unwrap();
        lock.lock().unwrap();
        let whole = home.join("whole");
        if !whole.exists() {
            install(&home, &requirements);
            fs::write(whole, "").unwrap();
        }
        Self { home }
    }
}

fn install(home: &Path, requirements: &str) {
    let mut environment = Command::new(INTERPRETER);
    environment.args(["-m", "venv", "--clear"]).arg(home);
    run(
        environment,
        "Python 3.10 or later with its venv module is needed: install python3 and python3-venv, or run ./dev test",
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
    let needed = format!("the Python packages of {requirements} cannot be installed: is PyPI within reach?");
    run(install, &needed);
}

fn run(mut command: Command, needed: &str) {
    let output = command
        .output()
        .unwrap_or_else(|error| panic!("{needed} ({error})"));
    let complained = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{needed}\n{complained}");
}
