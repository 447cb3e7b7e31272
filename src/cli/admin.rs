//! The way to the admin API: its address, the operator's token, and how answers are shown.

use std::path::Path;

use anyhow::Context as _;
use clap::Args;
use reqwest::{Body, Client, Method};
use secrecy::SecretString;
use serde::Serialize;

use super::client::{Refusal, client, read_url, send};
use super::show::{self, Column};
use super::{Nearby, Outcome};
use crate::secrets::{OPERATOR_TOKEN_FILE, expose};

/// Options of every operator's command.
#[derive(Debug, Args)]
pub(super) struct AdminOptions {
    /// Where operators are served. Unset: at VOUCHSAFE_ADMIN_ADDR.
    #[arg(long, global = true, env = "VOUCHSAFE_ADMIN_URL", value_name = "URL")]
    admin_url: Option<String>,

    /// The operator's token. Unset: the one in the data directory.
    #[arg(
        long,
        global = true,
        env = "VOUCHSAFE_OPERATOR_TOKEN",
        hide_env_values = true,
        value_name = "TOKEN"
    )]
    operator_token: Option<SecretString>,

    /// Show the answer as it came.
    #[arg(long, global = true)]
    json: bool,
}

/// Options of every list.
#[derive(Debug, Args)]
pub(super) struct PageOptions {
    /// How many, 1 to 100.
    #[arg(long, default_value_t = 100, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    limit: u32,

    /// Where the last page ended.
    #[arg(long, value_name = "CURSOR")]
    cursor: Option<String>,
}

/// A parameter of a query.
pub(super) type Parameter = (&'static str, String);

/// The admin API.
pub(super) struct Admin {
    client: Client,
    url: String,
    token: SecretString,
    json: bool,
}

impl Admin {
    /// # Errors
    /// When the URL is none, and when there is no token.
    pub(super) fn new(options: AdminOptions, nearby: &Nearby) -> anyhow::Result<Self> {
        let AdminOptions {
            admin_url,
            operator_token,
            json,
        } = options;
        let url = admin_url.as_deref().unwrap_or(&nearby.admin_url);
        read_url(url, "--admin-url")?;
        let url = url.trim_end_matches('/').to_owned();
        let token = match operator_token {
            Some(token) => token,
            None => kept_token(&nearby.data_dir)?,
        };
        Ok(Self {
            client: client(&url)?,
            url,
            token,
            json,
        })
    }

    /// An answer, or why there is none.
    pub(super) async fn call(
        &self,
        method: Method,
        path: &str,
        body: Option<&(impl Serialize + Sync)>,
    ) -> anyhow::Result<String> {
        let request = self.request(method, path, &[]);
        self.answer(match body {
            Some(body) => request.json(body),
            None => request,
        })
        .await
    }

    /// Sends a stream of another type than JSON.
    pub(super) async fn stream(
        &self,
        path: &str,
        query: &[Parameter],
        content_type: &str,
        body: Body,
    ) -> anyhow::Result<String> {
        let request = self.request(Method::POST, path, query);
        self.answer(request.header("Content-Type", content_type).body(body))
            .await
    }

    /// Does something to an object, and shows it as it is afterwards.
    pub(super) async fn change(
        &self,
        method: Method,
        path: &str,
        body: Option<&(impl Serialize + Sync)>,
    ) -> anyhow::Result<Outcome> {
        let answer = self.call(method, path, body).await?;
        self.show(answer, show::object)
    }

    /// Shows an object.
    pub(super) async fn object(&self, path: &str) -> anyhow::Result<Outcome> {
        self.change(Method::GET, path, NO_BODY).await
    }

    /// Shows a list as a table.
    pub(super) async fn list(
        &self,
        path: &str,
        query: &[Parameter],
        columns: &[Column],
    ) -> anyhow::Result<Outcome> {
        let answer = self.answer(self.request(Method::GET, path, query)).await?;
        self.show(answer, |answer| show::table(answer, columns))
    }

    /// Whether answers are shown as they come.
    pub(super) const fn shows_json(&self) -> bool {
        self.json
    }

    /// The answer as it came, or for people.
    pub(super) fn show(
        &self,
        answer: String,
        for_people: impl FnOnce(&str) -> anyhow::Result<String>,
    ) -> anyhow::Result<Outcome> {
        if self.json {
            return Ok(answer.into());
        }
        for_people(&answer)
            .map(Outcome::from)
            .context("the answer is of another form than expected")
    }

    fn request(&self, method: Method, path: &str, query: &[Parameter]) -> reqwest::RequestBuilder {
        let url = format!("{}/admin/v1{path}{}", self.url, query_text(query));
        self.client.request(method, url).bearer_auth(expose(&self.token))
    }

    async fn answer(&self, request: reqwest::RequestBuilder) -> anyhow::Result<String> {
        let answer = send(request, &self.url, "--admin-url").await?;
        if answer.status.is_success() {
            if answer.replayed {
                super::complain("done before: this is the answer of then");
            }
            return Ok(answer.body);
        }
        Err(Refusal::new(answer.status, answer.body, self.json).into())
    }
}

/// For a request without a body.
pub(super) const NO_BODY: Option<&()> = None;

impl PageOptions {
    /// As a query.
    pub(super) fn query(&self) -> Vec<Parameter> {
        let limit = ("limit", self.limit.to_string());
        let cursor = self.cursor.clone().map(|cursor| ("cursor", cursor));
        [limit].into_iter().chain(cursor).collect()
    }
}

/// The filters that are given, as a query.
pub(super) fn filters<const N: usize>(
    given: [(&'static str, &Option<String>); N],
) -> impl Iterator<Item = Parameter> {
    given
        .into_iter()
        .filter_map(|(name, value)| Some((name, value.clone()?)))
}

fn kept_token(data_dir: &Path) -> anyhow::Result<SecretString> {
    let path = data_dir.join(OPERATOR_TOKEN_FILE);
    let text = std::fs::read_to_string(&path).with_context(|| {
        let path = path.display();
        format!("there is no operator's token: set VOUCHSAFE_OPERATOR_TOKEN, or name the data directory of a sandbox \
                 with --data-dir ({path} cannot be read)")
    })?;
    Ok(text.trim().into())
}

fn query_text(query: &[Parameter]) -> String {
    let pairs: Vec<String> = query
        .iter()
        .map(|(name, value)| format!("{name}={}", escaped(value)))
        .collect();
    if pairs.is_empty() {
        String::new()
    } else {
        format!("?{}", pairs.join("&"))
    }
}

/// A text as a part of a URL.
pub(super) fn escaped(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    text.bytes()
        .map(|byte| {
            if plain(byte) {
                char::from(byte).to_string()
            } else {
                format!("%{byte:02X}")
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_escaped() {
        assert_eq!(query_text(&[]), "");
        assert_eq!(
            query_text(&[("a", "x y".to_owned()), ("b", "1&2/ß".to_owned())]),
            "?a=x%20y&b=1%262%2F%C3%9F"
        );
    }
}
