//! Client of the admin API: address, operator token, and output of responses.

use std::path::Path;

use anyhow::Context as _;
use clap::{Args, Subcommand};
use reqwest::{Body, Client, StatusCode};
use secrecy::SecretString;
use serde::{Deserialize, Serialize};
use vouchsafe_domain::ids::ChangeRequestId;
use vouchsafe_domain::period::Period;
use vouchsafe_private_postgres::OPERATOR_TOKEN_FILE;
use vouchsafe_security::secret::expose;
use vouchsafe_security::secret_file;
use vouchsafe_wire::column::{Column, of_terminal};
use vouchsafe_wire::filter::NoFilter;
use vouchsafe_wire::operator::actors::ActorsQuery;
use vouchsafe_wire::operator::operation::Operation;
use vouchsafe_wire::operator::search::SearchQuery;
use vouchsafe_wire::page::{CountParameter, PageParameters};
use vouchsafe_wire::{operation, query};

use super::client::{ClientCertificate, ErrorResponse, TransportOptions, build_client, parse_url, send};
use super::exit::WaitingChange;
use super::id::ObjectRef;
use super::table_options::TableOptions;
use super::target::{Target, http_method};
use super::{CONNECTION_OPTIONS, CommandOutput, LocalService, csv_export, output};

/// Options of all operator commands.
#[derive(Debug, Args)]
pub struct AdminOptions {
    /// URL of the admin API [default: from VOUCHSAFE_ADMIN_ADDR].
    #[arg(
        long,
        global = true,
        help_heading = CONNECTION_OPTIONS,
        env = "VOUCHSAFE_ADMIN_URL",
        value_name = "URL"
    )]
    admin_url: Option<String>,

    /// Operator token [default: from the data directory].
    #[arg(
        long,
        global = true,
        help_heading = CONNECTION_OPTIONS,
        env = "VOUCHSAFE_OPERATOR_TOKEN",
        hide_env_values = true,
        value_name = "TOKEN"
    )]
    operator_token: Option<SecretString>,

    #[command(flatten)]
    transport: TransportOptions,

    #[command(flatten)]
    certificate: ClientCertificate,
}

/// A group of operator commands.
#[derive(Debug, Args)]
pub struct AdminCommand<A: Subcommand> {
    #[command(flatten)]
    pub(super) options: AdminOptions,
    #[command(subcommand)]
    pub(super) action: A,
}

/// An operator command.
#[derive(Debug, Args)]
pub struct AdminQuery<Q: Args> {
    #[command(flatten)]
    pub(super) options: AdminOptions,
    #[command(flatten)]
    pub(super) query: Q,
}

/// Filter and page of a list.
#[derive(Debug, Args, Serialize)]
pub struct ListArgs<F: Args = NoFilter> {
    #[command(flatten)]
    #[serde(flatten)]
    filter: F,
    #[command(flatten)]
    #[serde(flatten)]
    page: PageParameters,
    #[command(flatten)]
    #[serde(flatten)]
    count: CountParameter,
    #[command(flatten)]
    #[serde(skip)]
    table: TableOptions,
}

/// Query of a list, and how it is printed.
pub(super) trait ListQuery: Serialize {
    fn table(&self) -> TableOptions {
        TableOptions::default()
    }
}

impl<F: Args + Serialize> ListQuery for ListArgs<F> {
    fn table(&self) -> TableOptions {
        self.table.clone()
    }
}

impl ListQuery for ActorsQuery {}

impl ListQuery for Period {}

impl ListQuery for SearchQuery {}

/// An object, and the body of a request about it.
#[derive(Debug, Args)]
pub struct RequestArgs<O: ObjectRef, B: Args> {
    #[command(flatten)]
    pub(super) object: O,
    #[command(flatten)]
    pub(super) request: B,
}

impl<O: ObjectRef, B: Args + Serialize> RequestArgs<O, B> {
    /// Sends the body to an operation on the object and prints the result.
    pub(super) fn send<R>(
        &self,
        operation: Operation<B, R>,
        admin: &AdminClient,
    ) -> impl Future<Output = anyhow::Result<CommandOutput>> {
        admin.send(self.object.at(operation), &self.request)
    }
}

pub(super) struct AdminClient {
    client: Client,
    url: String,
    token: SecretString,
    json: bool,
}

impl AdminClient {
    /// # Errors
    /// If the URL is invalid or there is no token.
    pub(super) fn new(
        options: AdminOptions,
        json: bool,
        local_service: &LocalService,
    ) -> anyhow::Result<Self> {
        let AdminOptions {
            admin_url,
            operator_token,
            transport,
            certificate,
        } = options;
        let url = admin_url.as_deref().unwrap_or(&local_service.admin_url);
        transport.check(&parse_url(url, "--admin-url")?, "--admin-url")?;
        let url = url.trim_end_matches('/').to_owned();
        let token = match operator_token {
            Some(token) => token,
            None => read_stored_token(&local_service.data_dir)?,
        };
        Ok(Self {
            client: build_client(&url, &certificate)?,
            url,
            token,
            json,
        })
    }

    /// Sends a request and returns the body of a successful response. The generic functions build a request
    /// and leave the rest to others: the compiler would make a state machine of each for every operation.
    pub(super) fn call<Q, R>(
        &self,
        target: impl Into<Target<Q, R>>,
        body: Option<&impl Serialize>,
    ) -> impl Future<Output = anyhow::Result<String>> {
        let request = self.request(&target.into());
        self.execute(match body {
            Some(body) => request.json(body),
            None => request,
        })
    }

    /// Sends a request with a query and returns the body of a successful response.
    pub(super) fn query<Q, R>(
        &self,
        target: impl Into<Target<Q, R>>,
        query: &str,
    ) -> impl Future<Output = anyhow::Result<String>> {
        self.execute(self.request(&target.into().query(query)))
    }

    /// Sends a stream of another content type than JSON.
    pub(super) async fn send_stream<Q: Serialize, R>(
        &self,
        target: impl Into<Target<Q, R>>,
        query: &Q,
        content_type: &str,
        body: Body,
    ) -> anyhow::Result<String> {
        let target = target.into().query(&query::to_string(query)?);
        let request = self.request(&target);
        self.execute(request.header("Content-Type", content_type).body(body))
            .await
    }

    /// Calls an operation without a body and prints the resulting object.
    pub(super) fn run<Q, R>(
        &self,
        target: impl Into<Target<Q, R>>,
    ) -> impl Future<Output = anyhow::Result<CommandOutput>> {
        self.print_object(self.request(&target.into()))
    }

    /// Sends a JSON body and prints the resulting object.
    pub(super) fn send<Q: Serialize, R>(
        &self,
        target: impl Into<Target<Q, R>>,
        body: &Q,
    ) -> impl Future<Output = anyhow::Result<CommandOutput>> {
        self.print_object(self.request(&target.into()).json(body))
    }

    /// Sends a JSON body to an operation of the listener outside the admin API, and prints the resulting
    /// object.
    pub(super) fn send_outside_api<Q: Serialize, R>(
        &self,
        operation: operation::Operation<Q, R, ()>,
        body: &Q,
    ) -> impl Future<Output = anyhow::Result<CommandOutput>> {
        let url = format!("{}{}", self.url, operation.route.path);
        let request = self.client.request(http_method(operation.route.method), url);
        self.print_object(request.bearer_auth(expose(&self.token)).json(body))
    }

    /// Prints a list as a table.
    pub(super) async fn list<Q, R>(
        &self,
        target: impl Into<Target<Q, R>>,
        query: &impl ListQuery,
    ) -> anyhow::Result<CommandOutput> {
        let table = query.table();
        let query = query::to_string(query)?;
        let target = target.into().query(&query);
        if table.csv && !self.json {
            return self.print_csv(target, &table).await;
        }
        let columns = table.choose(of_terminal(target.columns()))?;
        self.print_list(self.request(&target), &columns, &query, &table)
            .await
    }

    async fn print_object(&self, request: reqwest::RequestBuilder) -> anyhow::Result<CommandOutput> {
        let response = self.execute(request).await?;
        self.show(response, output::format_object)
    }

    async fn print_list(
        &self,
        request: reqwest::RequestBuilder,
        columns: &[Column],
        query: &str,
        table: &TableOptions,
    ) -> anyhow::Result<CommandOutput> {
        let response = self.execute(request).await?;
        self.show(response, |response| {
            output::format_list(response, columns, query, table)
        })
    }

    /// Prints all pages of a list, each as it arrives.
    async fn print_csv<Q, R>(
        &self,
        list: Target<Q, R>,
        options: &TableOptions,
    ) -> anyhow::Result<CommandOutput> {
        let table = csv_export::choose_table(list.columns(), options)?;
        let body = self.execute(self.request(&list)).await?;
        let mut next = csv_export::print_page(&table, &body, true)?;
        while let Some(cursor) = next {
            let body = self.execute(self.request(&list.at_cursor(&cursor))).await?;
            next = csv_export::print_page(&table, &body, false)?;
        }
        Ok(String::new().into())
    }

    pub(super) const fn is_json_output(&self) -> bool {
        self.json
    }

    /// Prints the response as JSON or formatted.
    pub(super) fn show(
        &self,
        response: String,
        format: impl FnOnce(&str) -> anyhow::Result<String>,
    ) -> anyhow::Result<CommandOutput> {
        if self.json {
            return Ok(response.into());
        }
        format(&response)
            .map(CommandOutput::from)
            .context("unexpected response format")
    }

    fn request<Q, R>(&self, target: &Target<Q, R>) -> reqwest::RequestBuilder {
        let url = format!("{}{}", self.url, target.path());
        let request = self.client.request(http_method(target.method()), url);
        request.bearer_auth(expose(&self.token))
    }

    async fn execute(&self, request: reqwest::RequestBuilder) -> anyhow::Result<String> {
        let response = send(request, &self.url, "--admin-url").await?;
        if response.status == StatusCode::ACCEPTED
            && let Ok(WaitingBody { request_id }) = serde_json::from_str(&response.body)
        {
            let output = self.show(response.body, output::format_object)?.text;
            return Err(WaitingChange { request_id, output }.into());
        }
        if response.status.is_success() {
            if response.replayed {
                super::print_error("already posted; showing the original result");
            }
            return Ok(response.body);
        }
        Err(ErrorResponse::new(response.status, response.body, self.json).into())
    }
}

/// The field of a change request that no other response has.
#[derive(Deserialize)]
struct WaitingBody {
    request_id: ChangeRequestId,
}

/// Body of a request without one.
pub(super) const NO_BODY: Option<&()> = None;

fn read_stored_token(data_dir: &Path) -> anyhow::Result<SecretString> {
    let path = data_dir.join(OPERATOR_TOKEN_FILE);
    let (text, exposed) = secret_file::read(&path).with_context(|| {
        let path = path.display();
        format!("no operator token: set VOUCHSAFE_OPERATOR_TOKEN, or name the data directory of a sandbox with --data-dir \
                 (cannot read {path})")
    })?;
    super::warn_of(exposed.as_ref());
    Ok(text.trim().into())
}
