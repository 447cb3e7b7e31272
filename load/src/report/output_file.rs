//! Output files of reports: their paths are checked before a run, and their content is replaced atomically
//! after it.

use std::fs::{self, File, Permissions};
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};

/// Checks that a file can be written, and that it is none of the files that the command reads.
///
/// # Errors
/// The error names the path and the reason.
pub fn check_output_file(path: &Path, inputs: &[&Path]) -> anyhow::Result<()> {
    let name = path.display();
    let target = resolve(path);
    ensure!(!target.is_dir(), "`{name}` is a directory: name a file");
    for input in inputs {
        ensure!(
            target != resolve(input),
            "`{name}` would overwrite `{}`: name another file for the new report",
            input.display()
        );
    }
    let is_writable = if is_special(&target) {
        File::options().write(true).open(&target).map(drop)
    } else {
        tempfile::tempfile_in(directory_of(&target)).map(drop)
    };
    is_writable
        .with_context(|| format!("cannot write `{name}`: name a file in a directory that you can write"))
}

/// Writes a file. A reader sees the old content or the new one, and a failure leaves the old one.
///
/// # Errors
/// The error names the path and the reason.
pub fn write_output_file(path: &Path, content: &[u8]) -> anyhow::Result<()> {
    let target = resolve(path);
    let written = if is_special(&target) {
        fs::write(&target, content)
    } else {
        replace(&target, content)
    };
    written.with_context(|| format!("cannot write `{}`", path.display()))
}

fn replace(target: &Path, content: &[u8]) -> std::io::Result<()> {
    // The umask applies, as for any new file.
    let mut temporary = tempfile::Builder::new()
        .prefix(".load-")
        .permissions(Permissions::from_mode(0o666))
        .tempfile_in(directory_of(target))?;
    temporary.write_all(content)?;
    temporary.persist(target)?;
    Ok(())
}

/// Follows symbolic links, so that a link keeps its target. A file that does not exist yet is named by its
/// directory.
fn resolve(path: &Path) -> PathBuf {
    if let Ok(target) = fs::canonicalize(path) {
        return target;
    }
    match (fs::canonicalize(directory_of(path)), path.file_name()) {
        (Ok(directory), Some(name)) => directory.join(name),
        _ => path.to_owned(),
    }
}

fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
        Some(parent) => parent,
        None => path,
    }
}

/// Pipes and devices, such as `/dev/stdout`, are written and not replaced.
fn is_special(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|metadata| !metadata.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn existing_file_is_replaced_and_nothing_else_remains() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("report.json");
        for content in ["old", "new"] {
            check_output_file(&path, &[]).unwrap();
            write_output_file(&path, content.as_bytes()).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), content);
        }
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o600, 0o600);
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
        write_output_file(Path::new("/dev/null"), b"discarded").unwrap();
        assert!(is_special(Path::new("/dev/null")));
    }

    #[test]
    fn link_keeps_its_target() {
        let directory = tempfile::tempdir().unwrap();
        let (file, link) = (directory.path().join("file"), directory.path().join("link"));
        fs::write(&file, "old").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        write_output_file(&link, b"new").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    }

    #[test]
    fn unusable_path_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let missing = directory.path().join("missing/report.json");
        let baseline = directory.path().join("baseline.json");
        fs::write(&baseline, "").unwrap();
        let dotted = directory.path().join("./baseline.json");
        for (path, inputs, reason) in [
            (
                missing.as_path(),
                vec![],
                "missing/report.json`: name a file in a directory",
            ),
            (directory.path(), vec![], "is a directory"),
            (dotted.as_path(), vec![baseline.as_path()], "would overwrite `"),
        ] {
            let error = format!("{:#}", check_output_file(path, &inputs).unwrap_err());
            assert!(
                error.contains(reason) && error.contains(&*path.display().to_string()),
                "{error}"
            );
        }
        let error = write_output_file(&missing, b"").unwrap_err().to_string();
        assert!(error.contains("missing/report.json"), "{error}");
    }
}
