//! Enums whose variants have one label: in JSON, in the database, on the command line and in the API.

/// Declares an enum with the spelling of its labels and the description of its schema.
macro_rules! labels {
    (
        $(#[$attribute:meta])*
        pub enum $name:ident: $case:tt $(as $schema:ident)?, $description:tt {
            $($(#[$of_variant:meta])* $variant:ident,)+
        }
    ) => {
        $(#[$attribute])*
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize, strum::EnumString,
            strum::IntoStaticStr, strum::VariantArray,
        )]
        #[derive(utoipa::ToSchema)]
        #[schema($(as = $schema,)? description = $description)]
        #[serde(rename_all = $case)]
        #[strum(serialize_all = $case, const_into_str)]
        pub enum $name {
            $($(#[$of_variant])* $variant,)+
        }
    };
}

pub(crate) use labels;
