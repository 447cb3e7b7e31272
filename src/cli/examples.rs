//! What do examples look like at the end of a command's help?

/// The examples of a command, each as it is typed. Tests read every one, and run those of
/// operators.
macro_rules! examples {
    ($($line:literal),+ $(,)?) => {
        concat!("Examples:", $("\n  ", $line),+)
    };
}

pub(crate) use examples;
