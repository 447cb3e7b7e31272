//! Is something shown that is planned?

use clap::ValueEnum;

/// Whether something is shown that is planned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Preview {
    /// It is shown.
    On,
    /// It is not.
    Off,
}
