//! Fuzzing of parsers on stable Rust: the inputs of a corpus, and random mutations of them by `proptest`,
//! which also shrinks an input that fails.
//!
//! A target is a test of the crate that owns the parser. Its corpus is a directory `fuzz/TARGET` of that
//! crate, one file per input. A failed input is written there, so that every later run begins with it. A
//! plain test run is short; `VOUCHSAFE_FUZZ_SECONDS` makes each target run that long.

#![allow(clippy::panic, reason = "a failed target fails its test")]

use std::env;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::test_runner::{Config, TestCaseError, TestError, TestRunner};

/// Mutated inputs of a plain test run, and between two looks at the clock in a long one.
const CASES: u32 = 1_000;

/// Bytes of an input that a message shows.
const MAX_SHOWN_BYTES: usize = 200;

const MAX_MUTATIONS: usize = 6;

/// Repeated parts grow quickly.
const MAX_INPUT_BYTES: usize = 64 * 1024;

const MAX_INSERTED_BYTES: usize = 40;

/// Setting of a long run.
const SECONDS: &str = "VOUCHSAFE_FUZZ_SECONDS";

/// Calls `check` with every input of the corpus in `CRATE/fuzz/TARGET`, and with mutations of them. `tokens`
/// are texts that mean something to the parser. `check` panics if a property does not hold.
///
/// # Panics
/// If a property does not hold, with the file of the input; if there is no corpus.
pub fn run(crate_directory: &str, target: &str, tokens: &'static [&'static str], check: fn(&[u8])) {
    let directory = Path::new(crate_directory).join("fuzz").join(target);
    let corpus = read_corpus(&directory);
    for (name, input) in &corpus {
        println_input(name);
        check(input);
    }
    let inputs: Vec<Vec<u8>> = corpus.into_iter().map(|(_, input)| input).collect();
    let seconds = env::var(SECONDS)
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(0);
    let (started, duration) = (Instant::now(), Duration::from_secs(seconds));
    loop {
        if let Err((reason, input)) = run_cases(&inputs, tokens, check) {
            let file = directory.join(format!("failed-{:016x}", hash(&input)));
            let kept = fs::write(&file, &input).map_or_else(
                |error| format!("cannot be written: {error}"),
                |()| format!("is {}", file.display()),
            );
            let shown = &input[..input.len().min(MAX_SHOWN_BYTES)];
            panic!("{target}: {reason}; the input {kept}: {}", shown.escape_ascii());
        }
        if started.elapsed() >= duration {
            return;
        }
    }
}

/// The output of a test is shown if it fails: its last line names the input.
#[allow(clippy::print_stdout)]
fn println_input(name: &str) {
    println!("input {name}");
}

fn read_corpus(directory: &Path) -> Vec<(String, Vec<u8>)> {
    let files = fs::read_dir(directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
    let mut corpus: Vec<(String, Vec<u8>)> = files
        .flatten()
        .filter_map(|file| {
            let name = file.file_name().to_string_lossy().into_owned();
            Some((name, fs::read(file.path()).ok()?))
        })
        .collect();
    assert!(!corpus.is_empty(), "{} has no input", directory.display());
    corpus.sort();
    corpus
}

/// Runs mutated inputs. An error has the reason and the shortest input that fails.
fn run_cases(
    corpus: &[Vec<u8>],
    tokens: &'static [&'static str],
    check: fn(&[u8]),
) -> Result<(), (String, Vec<u8>)> {
    let mutation = mutation(corpus.to_vec(), tokens);
    let mutations = prop::collection::vec(mutation, 1..=MAX_MUTATIONS);
    let inputs = (select(corpus.to_vec()), mutations).prop_map(|(input, mutations)| {
        mutations.iter().fold(input, |input, mutation| {
            let mut input = mutation.apply(input);
            input.truncate(MAX_INPUT_BYTES);
            input
        })
    });
    let config = Config {
        cases: CASES,
        failure_persistence: None,
        ..Config::default()
    };
    let outcome = TestRunner::new(config).run(&inputs, |input| {
        check(&input);
        Ok::<(), TestCaseError>(())
    });
    match outcome {
        Ok(()) => Ok(()),
        Err(TestError::Fail(reason, input)) => Err((reason.to_string(), input)),
        Err(TestError::Abort(reason)) => Err((reason.to_string(), Vec::new())),
    }
}

/// A change of an input.
#[derive(Debug, Clone)]
enum Mutation {
    Replace(Index, u8),
    Insert(Index, Vec<u8>),
    Remove(Index, Index),
    /// Repeats a part many times: deep nesting, long lists.
    Repeat(Index, Index, usize),
    /// The beginning of this input and the end of another.
    Splice(Index, Vec<u8>, Index),
}

fn mutation(corpus: Vec<Vec<u8>>, tokens: &'static [&'static str]) -> impl Strategy<Value = Mutation> {
    let position = any::<Index>;
    let token = select(tokens).prop_map(|token| token.as_bytes().to_vec());
    let bytes = prop::collection::vec(any::<u8>(), 0..MAX_INSERTED_BYTES);
    prop_oneof![
        (position(), any::<u8>()).prop_map(|(at, byte)| Mutation::Replace(at, byte)),
        (position(), bytes).prop_map(|(at, bytes)| Mutation::Insert(at, bytes)),
        (position(), token).prop_map(|(at, token)| Mutation::Insert(at, token)),
        (position(), position()).prop_map(|(from, to)| Mutation::Remove(from, to)),
        (position(), position(), 1_usize..200)
            .prop_map(|(from, to, times)| Mutation::Repeat(from, to, times)),
        (position(), select(corpus), position())
            .prop_map(|(at, other, from)| Mutation::Splice(at, other, from)),
    ]
}

impl Mutation {
    fn apply(&self, mut input: Vec<u8>) -> Vec<u8> {
        match self {
            Self::Replace(at, byte) => {
                if !input.is_empty() {
                    let at = at.index(input.len());
                    input[at] = *byte;
                }
            }
            Self::Insert(at, bytes) => {
                let at = at.index(input.len() + 1);
                input.splice(at..at, bytes.iter().copied());
            }
            Self::Remove(from, to) => {
                input.drain(range(&input, from, to));
            }
            Self::Repeat(from, to, times) => {
                let range = range(&input, from, to);
                let repeated = input[range.clone()].repeat(*times);
                input.splice(range, repeated);
            }
            Self::Splice(at, other, from) => {
                input.truncate(at.index(input.len() + 1));
                input.extend_from_slice(&other[from.index(other.len() + 1)..]);
            }
        }
        input
    }
}

fn range(input: &[u8], one: &Index, other: &Index) -> std::ops::Range<usize> {
    let (one, other) = (one.index(input.len() + 1), other.index(input.len() + 1));
    one.min(other)..one.max(other)
}

/// FNV-1a, for the name of a file.
fn hash(input: &[u8]) -> u64 {
    input.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use std::panic;

    use super::*;

    fn run_in(directory: &Path, check: fn(&[u8])) -> Result<(), String> {
        let directory = directory.to_str().map(ToOwned::to_owned).unwrap_or_default();
        let outcome = panic::catch_unwind(|| run(&directory, "target", &["token"], check));
        outcome.map_err(|payload| *payload.downcast::<String>().unwrap_or_default())
    }

    #[test]
    fn failed_input_is_shortened_and_kept() {
        let scratch = tempfile::tempdir().unwrap();
        let corpus = scratch.path().join("fuzz/target");
        fs::create_dir_all(&corpus).unwrap();
        fs::write(corpus.join("seed"), "a long input without the word").unwrap();
        let check = |input: &[u8]| assert!(!input.windows(5).any(|part| part == b"token"));
        let failure = run_in(scratch.path(), check).unwrap_err();
        let kept = fs::read_dir(&corpus)
            .unwrap()
            .flatten()
            .find(|file| file.file_name().to_string_lossy().starts_with("failed-"));
        let kept = kept.unwrap().path();
        assert!(failure.contains(kept.to_str().unwrap()), "{failure}");
        let input = fs::read(kept).unwrap();
        assert!(input.windows(5).any(|part| part == b"token"), "{input:?}");
        // The kept input fails by itself from now on.
        assert!(panic::catch_unwind(|| check(&input)).is_err());
    }

    #[test]
    fn property_that_holds_passes_and_an_empty_corpus_fails() {
        let scratch = tempfile::tempdir().unwrap();
        let corpus = scratch.path().join("fuzz/target");
        fs::create_dir_all(&corpus).unwrap();
        assert!(
            run_in(scratch.path(), |_| ())
                .unwrap_err()
                .contains("has no input")
        );
        fs::write(corpus.join("seed"), "x").unwrap();
        assert_eq!(run_in(scratch.path(), |_| ()), Ok(()));
    }
}
