//! Released migrations and SQL functions, by the SHA-256 of their text.

use sha2::{Digest as _, Sha256};

/// Describes each file of the list that was edited or removed. A line is `hash  file`, or a comment with the
/// version that released the files below it.
pub(crate) fn violations(list: &str, read: impl Fn(&str) -> Option<Vec<u8>>) -> Vec<String> {
    let lines = list.lines().filter(|line| !line.starts_with('#'));
    let files = lines.map(|line| line.split_once("  ").expect("each line has a hash and a file"));
    files
        .filter(|(hash, file)| read(file).is_none_or(|text| hex::encode(Sha256::digest(text)) != *hash))
        .map(|(_, file)| {
            format!(
                "migrations/{file} is released and must not change, because databases have it: restore the file; add a \
                 migration with the next number, or the function's next version under a new name, instead (CONTRIBUTING.md, \
                 \"Schema changes\")"
            )
        })
        .collect()
}

#[test]
fn edited_or_removed_released_file_is_a_violation() {
    let list = "# 1.0.0-rc.1\n\
        ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad  0001_baseline.sql\n\
        ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad  functions/example_v1.sql\n";
    assert!(violations(list, |_| Some(b"abc".to_vec())).is_empty());
    let edited = violations(list, |file| {
        Some(if file.contains("example") {
            b"abcd".to_vec()
        } else {
            b"abc".to_vec()
        })
    });
    assert_eq!(edited.len(), 1);
    assert!(
        edited[0].starts_with("migrations/functions/example_v1.sql is released"),
        "{edited:?}"
    );
    assert_eq!(violations(list, |_| None).len(), 2);
}
