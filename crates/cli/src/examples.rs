//! Examples at the end of a command's help.

/// Builds the examples of a command. Tests parse all of them and run those of operator commands.
#[macro_export]
macro_rules! examples {
    ($($line:literal),+ $(,)?) => {
        concat!("Examples:", $("\n  ", $line),+)
    };
}

pub(crate) use examples;
