//! `vouchsafe operator`: operators, their roles, API tokens and sessions.
//!
//! `create --admin` and `sign-in --break-glass` work on the database instead of the operator API: they create
//! the first operator, and let an administrator of the machine in again.

use anyhow::bail;
use clap::{Args, Subcommand};
use secrecy::zeroize::Zeroizing;
use serde::Serialize;
use time::Duration;
use vouchsafe_domain::clock::{Clock as _, SystemClock};
use vouchsafe_domain::operator::{OperatorName, Role};
use vouchsafe_domain::operator_session::SessionFilter;
use vouchsafe_kms::WrappingKeyArgs;
use vouchsafe_security::operator_token::{OperatorToken, TokenKind};
use vouchsafe_store::operators::{self, IssueLinkOutcome, NewOperatorToken};
use vouchsafe_wire::operator::operators::{
    ACTIVATE_OPERATOR_TOKEN, ActivationRequest, CHANGE_OPERATOR, CREATE_OPERATOR, END_OPERATOR_SESSION,
    ISSUE_OPERATOR_TOKEN, ISSUE_SIGN_IN_LINK, IssueTokenRequest, IssuedOperatorToken,
    LIST_OPERATOR_IDENTITIES, LIST_OPERATOR_SESSIONS, LIST_OPERATOR_TOKENS, LIST_OPERATORS, NewOperator,
    OperatorPatch, REVOKE_OPERATOR_TOKEN, UNLINK_OPERATOR_IDENTITIES,
};
use vouchsafe_wire::operator::sessions::SignInLink;

use super::admin::{AdminClient, ListArgs, NO_BODY, RequestArgs};
use super::call::read_text;
use super::database::DatabaseArgs;
use super::examples::examples;
use super::exit::UsageError;
use super::id::{ObjectRef as _, OperatorRef, OperatorSessionRef, OperatorTokenRef};
use super::{CommandOutput, LocalService, output};

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
    /// Show and unlink the identity of an operator at the identity provider.
    #[command(subcommand, after_help = examples!["vouchsafe operator identity list jane@example.com"])]
    Identity(IdentityAction),
    /// Print a link that signs an operator in to the console, once, for 10 minutes.
    #[command(after_help = examples!["vouchsafe operator sign-in jane.doe"])]
    SignIn(SignInArgs),
    /// List sessions in the console, newest first, with those that ended in the last 30 days.
    #[command(after_help = examples!["vouchsafe operator sessions jane.doe"])]
    Sessions(ListArgs<SessionFilter>),
    /// End a session, effective at once.
    #[command(after_help = examples!["vouchsafe operator sign-out SESSION_ID"])]
    SignOut(OperatorSessionRef),
}

#[derive(Debug, Args)]
pub struct SignInArgs {
    #[command(flatten)]
    operator: OperatorRef,
    /// Work on the database instead of the API, without an operator token.
    #[arg(long)]
    pub(super) break_glass: bool,
    #[command(flatten)]
    keys: Box<WrappingKeyArgs>,
    #[command(flatten)]
    database: DatabaseArgs,
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
    keys: Box<WrappingKeyArgs>,
    #[command(flatten)]
    database: DatabaseArgs,
}

#[derive(Debug, Subcommand)]
pub enum IdentityAction {
    /// Show the person at the identity provider to whom an account belongs.
    #[command(after_help = examples!["vouchsafe operator identity list jane@example.com"])]
    List {
        #[command(flatten)]
        operator: OperatorRef,
        #[command(flatten)]
        list: ListArgs,
    },
    /// Unlink an account from its person: its sessions end and its API tokens are revoked.
    #[command(after_help = examples!["vouchsafe operator identity unlink jane@example.com"])]
    Unlink(OperatorRef),
}

#[derive(Debug, Subcommand)]
pub enum TokenAction {
    /// Issue a token; it is shown once.
    #[command(after_help = examples!["vouchsafe operator token issue jane.doe --days 30"])]
    Issue(RequestArgs<OperatorRef, IssueTokenRequest>),
    /// List the tokens of an operator, newest first, with those that ended in the last 90 days.
    #[command(after_help = examples!["vouchsafe operator token list jane.doe"])]
    List {
        #[command(flatten)]
        operator: OperatorRef,
        #[command(flatten)]
        list: ListArgs,
    },
    /// Activate your new token, which another operator confirmed, with the code that they gave you.
    #[command(after_help = examples!["vouchsafe operator token activate @code.txt"])]
    Activate {
        /// The code: @FILE, - for standard input, or the text. It works once, and with your token alone.
        code: String,
    },
    /// Revoke a token, effective at once.
    #[command(after_help = examples!["vouchsafe operator token revoke TOKEN_ID"])]
    Revoke(OperatorTokenRef),
}

pub(super) async fn run(action: Action, admin: &AdminClient) -> anyhow::Result<CommandOutput> {
    match action {
        Action::List(list) => admin.list(LIST_OPERATORS, &list).await,
        Action::Create(args) => {
            let role = args
                .role
                .ok_or_else(|| UsageError("--role is missing".to_owned()))?;
            let name = args.name;
            admin.send(CREATE_OPERATOR, &NewOperator { name, role }).await
        }
        Action::Change(args) => args.send(CHANGE_OPERATOR, admin).await,
        Action::Token(TokenAction::Issue(args)) => args.send(ISSUE_OPERATOR_TOKEN, admin).await,
        Action::Token(TokenAction::List { operator, list }) => {
            admin.list(operator.at(LIST_OPERATOR_TOKENS), &list).await
        }
        Action::Token(TokenAction::Activate { code }) => {
            // A file ends with a line feed, which is not part of the code.
            let code = Zeroizing::new(read_text(&code)?);
            let request = ActivationRequest::new(code.trim().into());
            admin.send_outside_api(ACTIVATE_OPERATOR_TOKEN, &request).await
        }
        Action::Token(TokenAction::Revoke(token)) => {
            let response = admin.call(token.at(REVOKE_OPERATOR_TOKEN), NO_BODY).await?;
            admin.show(response, |_| Ok(format!("{} is revoked", token.token_id)))
        }
        Action::Identity(IdentityAction::List { operator, list }) => {
            admin.list(operator.at(LIST_OPERATOR_IDENTITIES), &list).await
        }
        Action::Identity(IdentityAction::Unlink(operator)) => {
            let response = admin
                .call(operator.at(UNLINK_OPERATOR_IDENTITIES), NO_BODY)
                .await?;
            admin.show(response, |_| {
                Ok(format!("{} belongs to no identity", operator.name))
            })
        }
        Action::SignIn(args) => admin.run(args.operator.at(ISSUE_SIGN_IN_LINK)).await,
        Action::Sessions(list) => admin.list(LIST_OPERATOR_SESSIONS, &list).await,
        Action::SignOut(session) => {
            let response = admin.call(session.at(END_OPERATOR_SESSION), NO_BODY).await?;
            admin.show(response, |_| Ok(format!("{} is ended", session.session_id)))
        }
    }
}

/// Issues a sign-in link in the database and prints it.
pub(super) async fn issue_link(
    args: SignInArgs,
    json: bool,
    local_service: &LocalService,
) -> anyhow::Result<CommandOutput> {
    let operator: OperatorName = args.operator.name.parse()?;
    if !local_service
        .console_url
        .permits_sessions(local_service.environment)
    {
        bail!(
            "production has no sign-in over plain HTTP; set VOUCHSAFE_CONSOLE_URL to the https URL of the operator listener"
        )
    }
    let token = OperatorToken::generate(TokenKind::SignInLink, getrandom::fill)?;
    let hash = token.hash();
    let issue =
        async |database, grants| operators::issue_sign_in_link(&database, &grants, &operator, hash).await;
    let outcome = args
        .database
        .run_with_grants(&args.keys, local_service, "issue a sign-in link in", issue)
        .await?;
    let expires_at = match outcome {
        IssueLinkOutcome::Issued { expires_at } => expires_at,
        IssueLinkOutcome::OperatorNotFound => {
            bail!("no such operator; create one with `vouchsafe operator create {operator} --admin`")
        }
        IssueLinkOutcome::OperatorDisabled => {
            bail!("the operator is disabled; enable it with `vouchsafe operator create {operator} --admin`")
        }
    };
    let link = SignInLink::new(operator, &local_service.console_url, &token, expires_at);
    show_object(&link, json)
}

fn show_object(object: &impl Serialize, json: bool) -> anyhow::Result<CommandOutput> {
    let text = serde_json::to_string(object)?;
    Ok(CommandOutput::from(if json {
        text
    } else {
        output::format_object(&text)?
    }))
}

/// Creates an admin in the database and prints the token.
pub(super) async fn create_admin(
    args: CreateArgs,
    json: bool,
    local_service: &LocalService,
) -> anyhow::Result<CommandOutput> {
    let days = args.token.validate_days();
    let days = days.map_err(|error| UsageError(error.to_string()))?;
    let token = OperatorToken::generate(TokenKind::Api, getrandom::fill)?;
    let new = NewOperatorToken {
        operator: args.name,
        hash: token.hash(),
        expires_at: Some(SystemClock::new().now() + Duration::days(days.into())),
        session_id: None,
        activation: None,
    };
    let create = async |database, grants| operators::create_admin(&database, &grants, &new).await;
    let summary = args
        .database
        .run_with_grants(&args.keys, local_service, "create an operator in", create)
        .await?;
    let issued = IssuedOperatorToken {
        summary,
        token: Some(token.expose().into()),
        activation_code: None,
    };
    show_object(&issued, json)
}
