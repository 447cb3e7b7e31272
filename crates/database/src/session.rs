//! Connections with the settings that the service relies on, also through a pooler that drops the startup
//! parameter `options`.

use std::collections::BTreeMap;

use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions as _, PgConnection};

/// Opens a connection with the settings of its options.
///
/// # Errors
/// [`sqlx::Error`]: nothing was sent but settings.
pub async fn open(options: &PgConnectOptions) -> Result<PgConnection, sqlx::Error> {
    let mut connection = options.connect().await?;
    apply_settings(&mut connection, options).await?;
    Ok(connection)
}

/// Sets what differs from the options, which a pooler in session mode may drop. It resets a connection before
/// another client gets it.
pub(crate) async fn apply_settings(
    connection: &mut PgConnection,
    options: &PgConnectOptions,
) -> Result<(), sqlx::Error> {
    let (names, values): (Vec<_>, Vec<_>) = settings(options.get_options().unwrap_or_default())
        .into_iter()
        .unzip();
    sqlx::query(
        "SELECT set_config(s.name, s.value, false)
           FROM unnest($1::text[], $2::text[]) AS s (name, value)
          WHERE current_setting(s.name, true) IS DISTINCT FROM s.value",
    )
    .bind(names)
    .bind(values)
    .persistent(false)
    .execute(connection)
    .await
    .map(drop)
}

/// The settings of the startup parameter, as Postgres reads it: `-c name=value` or `--name=value`, where a
/// backslash escapes a character. The last one of a name counts.
fn settings(options: &str) -> BTreeMap<String, String> {
    let mut settings = BTreeMap::new();
    let mut is_assignment = false;
    for word in words(options) {
        let assignment = match word.strip_prefix("--").or_else(|| word.strip_prefix("-c")) {
            Some("") => {
                is_assignment = true;
                continue;
            }
            Some(assignment) => assignment,
            None if is_assignment => &word,
            None => continue,
        };
        is_assignment = false;
        if let Some((name, value)) = assignment.split_once('=') {
            settings.insert(name.replace('-', "_"), value.to_owned());
        }
    }
    settings
}

fn words(options: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut characters = options.chars();
    while let Some(character) = characters.next() {
        let word = words.last_mut();
        match (character, word) {
            ('\\', Some(word)) => word.extend(characters.next()),
            (character, Some(word)) if !character.is_ascii_whitespace() => word.push(character),
            _ => words.push(String::new()),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_read_as_postgres_reads_them() {
        let options =
            PgConnectOptions::new().options([("lock_timeout", "2s"), ("search_path", r"a\b, public")]);
        let own = options.get_options().unwrap();
        let text = format!(r"{own} -clock_timeout=1s --statement-timeout=5 -c jit=off -B 7");
        let expected = [
            ("jit", "off"),
            ("lock_timeout", "1s"),
            ("search_path", r"a\b, public"),
            ("statement_timeout", "5"),
        ];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(settings(&text), expected.into());
        assert_eq!(settings(""), BTreeMap::new());
    }
}
