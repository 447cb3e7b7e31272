//! `vouchsafe vendor`: vendors and their adapters.

use clap::Subcommand;
use secrecy::zeroize::Zeroizing;
use vouchsafe_security::secret::expose;
use vouchsafe_wire::operator::vendors::{GET_VENDOR, LIST_VENDORS, PUT_VENDOR, VendorRequest};

use super::admin::{AdminClient, ListArgs, RequestArgs};
use super::call::read_text;
use super::examples::examples;
use super::id::{ObjectRef as _, VendorRef};
use super::{CommandOutput, print_error};

#[derive(Debug, Subcommand)]
pub enum Action {
    /// Create or replace a vendor.
    #[command(after_help = examples![
        "vouchsafe vendor put by-hand --adapter manual",
        "vouchsafe vendor put acme --adapter http --url https://acme.example --credentials @credential.txt",
    ])]
    Put(RequestArgs<VendorRef, VendorRequest>),
    /// List vendors, without credentials, with their circuit breakers on the node that responds.
    #[command(after_help = examples!["vouchsafe vendor list --json"])]
    List(ListArgs),
    /// Show a vendor, without its credentials, with its circuit breaker on the node that responds.
    #[command(after_help = examples!["vouchsafe vendor show VENDOR_ID"])]
    Show(VendorRef),
}

pub(super) async fn run(action: Action, admin: &AdminClient) -> anyhow::Result<CommandOutput> {
    match action {
        Action::Put(mut args) => {
            if let Some(argument) = &args.request.credentials {
                if !matches!(expose(argument).as_bytes(), [b'@', ..] | b"-") {
                    print_error(
                        "vouchsafe: warning: --credentials is visible to every user of this machine, in \
                         the list of processes; name a file: --credentials @FILE",
                    );
                }
                // A file ends with a line feed, which is not part of the credential.
                let text = Zeroizing::new(read_text(expose(argument))?);
                args.request.credentials = Some(text.trim_end().into());
            }
            args.send(PUT_VENDOR, admin).await
        }
        Action::Show(vendor) => admin.run(vendor.at(GET_VENDOR)).await,
        Action::List(args) => admin.list(LIST_VENDORS, &args).await,
    }
}
