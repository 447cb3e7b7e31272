//! Body of `GET /settings`.

use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr, VariantArray};
use utoipa::ToSchema;

/// A setting of the node that responds.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Setting {
    /// Name of its environment variable.
    pub name: String,
    /// Value in force, also where the default depends on other settings; null for secrets, and where nothing
    /// is set: see `description`.
    #[schema(required)]
    pub value: Option<String>,
    /// Whether the value is secret, and therefore not shown.
    pub is_secret: bool,
    /// Where the value comes from.
    pub source: SettingSource,
    /// What the setting is for.
    pub description: String,
}

/// Where the value of a setting comes from.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Serialize,
    Deserialize,
    ToSchema,
    EnumString,
    IntoStaticStr,
    VariantArray,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum SettingSource {
    /// An option of the command line.
    Option,
    Environment,
    /// The settings file, or the file of a secret.
    File,
    /// The default, which may depend on other settings. A sandbox generates secrets in its data directory.
    Default,
    /// It has no value.
    Unset,
}
