//! Switch for preview features.

use clap::ValueEnum;

/// Whether a preview feature is enabled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Preview {
    On,
    Off,
}
