//! Offline data of checked SQL: rebuilds `crates/store/.sqlx` from a freshly migrated private server (`./dev sql`), or compares it
//! with one (`./dev sql --check`).
//!
//! An example, because a program that depends on the store could not be compiled while the offline data is incomplete.

use std::collections::BTreeMap;
use std::error::Error;
use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::SystemTime;

use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions as _, Executor as _};
use vouchsafe_private_postgres::{DataDir, Durability, GUARD_SUBCOMMAND, PrivatePostgres, run_guard};

type Failure = Box<dyn Error>;

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    if arguments.first().is_some_and(|first| first == GUARD_SUBCOMMAND) {
        return run_guard(arguments.into_iter().skip(1));
    }
    let check = arguments.iter().any(|argument| argument == "--check");
    match run(check) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("offline_sql: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(check: bool) -> Result<(), Failure> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let committed = root.join("crates/store/.sqlx");
    let scratch = tempfile::tempdir()?;
    let server = PrivatePostgres::start(
        &DataDir::open(&scratch.path().join("server"))?,
        &std::env::current_exe()?,
        Durability::ForTests,
    )?;
    let database = server.connect_options();
    let generated = migrate(&root.join("migrations"), &database).and_then(|()| {
        let generated = scratch.path().join("sqlx");
        fs::create_dir(&generated)?;
        compile(&root, &database, &generated)?;
        Ok(read_dir(&generated)?)
    });
    server.stop()?;
    let generated = generated?;
    fs::create_dir_all(&committed)?;
    let current = read_dir(&committed)?;
    if generated == current {
        return Ok(());
    }
    if check {
        let differs = |name: &&PathBuf| generated.get(*name) != current.get(*name);
        let differing = generated.keys().chain(current.keys()).filter(differs);
        let names: Vec<String> = differing.map(|name| name.display().to_string()).collect();
        return Err(format!(
            "crates/store/.sqlx is outdated; run ./dev sql\n{}",
            names.join("\n")
        )
        .into());
    }
    for name in current.keys().filter(|name| !generated.contains_key(*name)) {
        fs::remove_file(committed.join(name))?;
    }
    for (name, content) in generated {
        fs::write(committed.join(name), content)?;
    }
    Ok(())
}

/// Runs the migrations and installs the functions, both in the order of their names.
fn migrate(migrations: &Path, database: &PgConnectOptions) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let mut connection = database.connect().await?;
        for directory in [migrations, &migrations.join("functions")] {
            for (name, sql) in read_dir(directory)? {
                if name.extension().is_some_and(|extension| extension == "sql") {
                    connection.execute(AssertSqlSafe(String::from_utf8(sql)?)).await?;
                }
            }
        }
        Ok(())
    })
}

/// Compiles the store against the server: each macro writes its file to `output`.
fn compile(root: &Path, database: &PgConnectOptions, output: &Path) -> Result<(), Failure> {
    // Cargo does not know that the crate depends on the variables below.
    File::open(root.join("crates/store/src/lib.rs"))?.set_modified(SystemTime::now())?;
    let status = Command::new(env!("CARGO"))
        .current_dir(root)
        .args(["--config", "env.SQLX_OFFLINE.value=\"false\""])
        .args([
            "check",
            "--package",
            "vouchsafe-store",
            "--lib",
            "--locked",
            "--quiet",
        ])
        .env("DATABASE_URL", database.to_url_lossy().as_str())
        .env("SQLX_OFFLINE_DIR", output)
        .status()?;
    if status.success() {
        Ok(())
    } else {
        Err("the store does not compile".into())
    }
}

/// The files of a directory, by name.
fn read_dir(directory: &Path) -> Result<BTreeMap<PathBuf, Vec<u8>>, std::io::Error> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            files.insert(entry.file_name().into(), fs::read(entry.path())?);
        }
    }
    Ok(files)
}
