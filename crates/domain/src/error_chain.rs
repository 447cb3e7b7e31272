//! Message of an error with its chain of causes, each once.

use std::error::Error;

/// The message of the error and those of its causes, except those that the message before contains: `Display`
/// of many errors, also of sqlx, quotes their source.
#[must_use]
pub fn describe_chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut before = text.clone();
    let mut source = error.source();
    while let Some(cause) = source {
        let message = cause.to_string();
        if !before.contains(&message) {
            text = format!("{text}: {message}");
        }
        before = message;
        source = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("unlock the data keys")]
    struct WithoutCause(#[source] WithCause);

    #[derive(Debug, thiserror::Error)]
    #[error("cannot read the keys: {0}; check the disk")]
    struct WithCause(#[source] io::Error);

    /// Its cause repeats a part of an earlier message, but not of its own.
    #[derive(Debug, thiserror::Error)]
    #[error("no access to the keys")]
    struct Outer(#[source] NoKey);

    #[derive(Debug, thiserror::Error)]
    #[error("no key")]
    struct NoKey(#[source] io::Error);

    #[test]
    fn cause_that_a_message_contains_is_not_repeated() {
        let error = WithoutCause(WithCause(io::Error::other("no space left")));
        assert_eq!(
            describe_chain(&error),
            "unlock the data keys: cannot read the keys: no space left; check the disk"
        );
        let error = WithoutCause(WithCause(io::Error::other("keys")));
        assert_eq!(
            describe_chain(&error),
            "unlock the data keys: cannot read the keys: keys; check the disk"
        );
        let outer = Outer(NoKey(io::Error::other("no access")));
        assert_eq!(describe_chain(&outer), "no access to the keys: no key: no access");
    }
}
