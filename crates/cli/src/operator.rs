//! `vouchsafe operator`: operators, their roles and API tokens.
//!
//! `create --admin` works on the database instead of the operator API: it creates the first operator, and lets an administrator
//! of the machine in again.

use std::path::Path;

use clap::{Args, Subcommand};
use reqwest::Method;
use time::Duration;
use vouchsafe_domain::clock::{Clock as _, SystemClock};
use vouchsafe_domain::operator::{OperatorName, Role};
use vouchsafe_security::operator_token::OperatorToken;
use vouchsafe_store::operators::{self, NewOperatorToken};
use vouchsafe_wire::operator::operators::{
    IssueTokenRequest, IssuedOperatorToken, NewOperator, OperatorPatch,
};

use super::admin::{AdminClient, ListArgs, NO_BODY, RequestArgs};
use super::database::DatabaseArgs;
use super::examples::examples;
use super::exit::UsageError;
use super::id::{ObjectRef as _, OperatorRef, OperatorTokenRef};
use super::table::{Column, column};
use super::{CommandOutput, output};

const COLUMNS: [Column; 4] = [
    column("NAME", "name"),
    column("ROLE", "role"),
    column("DISABLED", "disabled"),
    column("CREATED", "created_at"),
];

const TOKEN_COLUMNS: [Column; 5] = [
    column("TOKEN", "token_id"),
    column("UNTIL", "expires_at"),
    column("REVOKED", "revoked_at"),
    column("USED", "last_used_at"),
    column("FROM", "created_at"),
];

#[derive(Debug, Subcommand)]
pub enum Action {
    /// List operators.
    #[command(after_help = examples!["vouchsafe operator list"])]
    List(ListArgs),
    /// Create an operator.
    #[command(after_help = examples!["vouchsafe operator create jane.doe --role operator"])]
    Create(CreateArgs),
    /// Change the role of an operator, or refuse all tokens of the operator.
    #[command(after_help = examples![
        "vouchsafe operator change jane.doe --role viewer",
        "vouchsafe operator change jane.doe --disabled true",
    ])]
    Change(RequestArgs<OperatorRef, OperatorPatch>),
    /// Issue, list and revoke API tokens of operators.
    #[command(subcommand, after_help = examples!["vouchsafe operator token list jane.doe"])]
    Token(TokenAction),
}

#[derive(Debug, Args)]
pub struct CreateArgs {
    /// Name of the operator in the audit trail.
    name: OperatorName,
    /// viewer, operator or admin.
    #[arg(
        long,
        value_parser = vouchsafe_domain::arguments::enum_parser::<Role>(),
        required_unless_present = "admin",
        conflicts_with = "admin"
    )]
    role: Option<Role>,
    /// Work on the database instead of the API: make the operator an enabled admin, and issue a token.
    #[arg(long)]
    pub(super) admin: bool,
    #[command(flatten)]
    token: IssueTokenRequest,
    #[command(flatten)]
    database: DatabaseArgs,
}

#[derive(Debug, Subcommand)]
pub enum TokenAction {
    /// Issue a token; it is shown once.
    #[command(after_help = examples!["vouchsafe operator token issue jane.doe --days 30"])]
    Issue(RequestArgs<OperatorRef, IssueTokenRequest>),
    /// List the tokens of an operator, newest first, including revoked and expired ones.
    #[command(after_help = examples!["vouchsafe operator token list jane.doe"])]
    List {
        #[command(flatten)]
        operator: OperatorRef,
        #[command(flatten)]
        list: ListArgs,
    },
    /// Revoke a token, effective at once.
    #[command(after_help = examples!["vouchsafe operator token revoke TOKEN_ID"])]
    Revoke(OperatorTokenRef),
}

pub(super) async fn run(action: Action, admin: &AdminClient) -> anyhow::Result<CommandOutput> {
    match action {
        Action::List(list) => admin.list("/operators", &list, &COLUMNS).await,
        Action::Create(args) => {
            let role = args
                .role
                .ok_or_else(|| UsageError("--role is missing".to_owned()))?;
            let name = args.name;
            admin.post("/operators", &NewOperator { name, role }).await
        }
        Action::Change(args) => {
            admin
                .change(Method::PATCH, &args.object.path(), Some(&args.request))
                .await
        }
        Action::Token(TokenAction::Issue(args)) => args.post("tokens", admin).await,
        Action::Token(TokenAction::List { operator, list }) => {
            let path = format!("{}/tokens", operator.path());
            admin.list(&path, &list, &TOKEN_COLUMNS).await
        }
        Action::Token(TokenAction::Revoke(token)) => {
            let response = admin.call(Method::DELETE, &token.path(), NO_BODY).await?;
            admin.show(response, |_| Ok(format!("{} is revoked", token.token_id)))
        }
    }
}

/// Creates an admin in the database and prints the token.
pub(super) async fn create_admin(
    args: CreateArgs,
    json: bool,
    data_dir: &Path,
) -> anyhow::Result<CommandOutput> {
    let days = args.token.validate_days();
    let days = days.map_err(|error| UsageError(error.to_string()))?;
    let token = OperatorToken::generate(getrandom::fill)?;
    let new = NewOperatorToken {
        operator: args.name,
        hash: token.hash(),
        expires_at: Some(SystemClock::new().now() + Duration::days(days.into())),
    };
    let create = async |database| operators::create_admin(&database, &new).await;
    let summary = args
        .database
        .run(data_dir, "create an operator in", create)
        .await?;
    let issued = serde_json::to_string(&IssuedOperatorToken {
        summary,
        token: Some(token.expose().into()),
    })?;
    Ok(CommandOutput::from(if json {
        issued
    } else {
        output::format_object(&issued)?
    }))
}
