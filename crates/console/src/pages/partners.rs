//! Partners: search, terms, credentials, wallets and ledger, certification.

use vouchsafe_domain::ledger::LedgerKind;
use vouchsafe_domain::revocation::DescendantPolicy;
use vouchsafe_wire::operator::{credentials, orders, partners, wallets, webhooks};

use super::{audit_of, waiting_changes};
use crate::json::Json;
use crate::page::{
    Action, FROM, Input, List, Object, Page, REASON, Section, Source, TO, choice, col, filter, labels, target,
};

const ALLOWLIST: Input = Input::field("allowlist", "Allowlist")
    .hint("Networks or addresses, one per line. An empty list denies all.");

const POSTING: [Input; 3] = [
    Input::placeholder("currency", "Currency").hint("Such as USD."),
    Input::field("amount", "Amount").hint("Such as 1000.00."),
    Input::field("reference", "Reference")
        .hint("Such as the number of a bank statement. The amount is posted once per reference."),
];

/// A limit of each credential.
const fn limit(name: &'static str, label: &'static str) -> Input {
    Input::field(name, label).hint("Requests per seconds, such as 100/60. Empty: the limit of the settings.")
}

/// A limit of all credentials together.
const fn ceiling(name: &'static str, label: &'static str) -> Input {
    Input::field(name, label)
        .hint("Requests of all credentials together per seconds, such as 2000/60. Empty: no such limit.")
}

const fn instant(name: &'static str, label: &'static str) -> Input {
    Input::field(name, label).hint("Such as 2026-11-20T12:00:00Z. Empty: none.")
}

fn is_suspended(partner: &Json) -> bool {
    *partner.get("suspended") == Json::Bool(true)
}

const fn change(slug: &'static str, label: &'static str, inputs: &'static [Input]) -> Action {
    Action::new(slug, label, partners::CHANGE_PARTNER)
        .inputs(inputs)
        .done("The terms were changed. They apply from the next request.")
}

fn banner(partner: &Json) -> &'static str {
    match (is_suspended(partner), partner.get("codes_blocked")) {
        (true, Json::Bool(true)) => {
            "This partner is suspended: its requests are refused, also reads of codes."
        }
        (true, _) => {
            "This partner is suspended: its requests are refused, except reads of codes that it has paid for."
        }
        (false, _) => "",
    }
}

fn is_live(credential: &Json) -> bool {
    *credential.get("live") == Json::Bool(true)
}

const CREDENTIAL_ACTIONS: &[Action] = &[
    Action::new("rotate", "Rotate", credentials::ROTATE_CREDENTIAL)
        .inputs(&[Input::field(
            "overlap_seconds",
            "Seconds until this credential ends",
        )])
        .when(is_live)
        .note("Issues its successor, whose secret is shown once, and ends this credential.")
        .shows("New credential: its secret is shown only now"),
    Action::by_query(
        "revoke",
        "Revoke",
        credentials::REVOKE_CREDENTIAL,
        "descendants={descendants}",
    )
    .inputs(&[Input::choice::<DescendantPolicy>(
        "descendants",
        "Credentials rotated from it",
    )])
    .when(is_live)
    .dangerous()
    .note("Requests with this credential, and with those rotated from it, are refused from now on.")
    .shows("The credential was revoked"),
];

const ISSUE: Action = Action::new("issue", "Issue a credential", credentials::ISSUE_CREDENTIAL)
    .inputs(&[
        Input::field("allowlist", "Allowlist of the credential")
            .hint("Narrower than the partner's, one network per line."),
        Input::field("scopes", "Scopes of the credential").hint("None: all."),
    ])
    .note("The secret is shown once.")
    .shows("New credential: its secret is shown only now");

const ACTIONS: &[Action] = &[
    Action::new("top-up", "Top up", wallets::TOP_UP)
        .inputs(&POSTING)
        .done("The amount was added to the wallet."),
    Action::new("adjust", "Adjust a balance", wallets::ADJUST)
        .inputs(&POSTING)
        .note("A negative amount takes money away.")
        .done("The balance was adjusted."),
    ISSUE,
    change("allowlist", "Change the allowlist", &[ALLOWLIST]),
    change(
        "limits",
        "Change rate limits",
        &[
            limit("limits.orders", "Orders"),
            limit("limits.general", "General"),
            limit("limits.auth", "Rotations"),
            limit("limits.vouchers", "Reads of codes"),
        ],
    ),
    change(
        "ceilings",
        "Change rate limits of all credentials",
        &[
            ceiling("ceilings.orders", "Orders"),
            ceiling("ceilings.general", "General"),
            ceiling("ceilings.auth", "Rotations"),
            ceiling("ceilings.vouchers", "Reads of codes"),
        ],
    ),
    // A form of its own: a change of the rule needs a second operator, and the other terms do not.
    change(
        "approval-rule",
        "Change the approval rule",
        &[Input::field("approval_rule", "Approval rule")
            .hint("Which orders wait for an operator. Not set: none.")],
    ),
    // Its own form for the same reason.
    change(
        "caps",
        "Change the caps",
        &[Input::field("caps", "Caps").hint("Not set: those of the settings. Set, and all empty: none.")],
    ),
    change(
        "terms",
        "Change catalogue and cancellation",
        &[
            Input::field("catalogue", "Catalogue").hint("Not set: all products."),
            Input::field("cancel_window_s", "Cancellation window, in seconds"),
        ],
    ),
    change(
        "certification",
        "Record certification",
        &[
            instant("certified_at", "Certification passed"),
            instant("agreement_signed_at", "Agreement signed"),
        ],
    ),
    change(
        "suspend",
        "Suspend",
        &[Input::field(
            "codes_blocked",
            "Also block reads of codes that it has paid for",
        )],
    )
    .fixed(&[("suspended", "true")])
    .when(|partner| !is_suspended(partner))
    .dangerous()
    .done("The partner is suspended."),
    change("resume", "Resume", &[])
        .fixed(&[("suspended", "false"), ("codes_blocked", "false")])
        .when(is_suspended)
        .done("The partner is no longer suspended."),
    Action::new(
        "restart-certification",
        "Start certification over",
        partners::RESTART_CERTIFICATION,
    )
    .note("Discards the observations of the sandbox.")
    .done("The observations were discarded."),
    Action::new("erase", "Erase personal data", partners::ERASE_PARTNER)
        .inputs(&[REASON])
        .dangerous()
        .note(
            "References, metadata, destinations and reasons of its closed orders and decided payouts are \
            removed for ever. Amounts, vouchers and the audit trail stay. An order or payout that is still \
            open is left out.",
        )
        .done("Personal data was erased. If the partner has many orders, repeat it until nothing is left."),
];

const SECTIONS: &[Section] = &[
    waiting_changes(
        "status=WAITING&object={partner_id}",
        "/requests?status=WAITING&object={partner_id}",
    ),
    Section::list(
        "Wallets",
        target(wallets::LIST_WALLETS),
        "",
        "It has no wallet: the first top-up makes one.",
    ),
    Section::list(
        "Rate limits",
        target(partners::LIST_LIMIT_USE).query("limit=100"),
        "",
        "It has no live credential.",
    ),
    Section::list(
        "Ledger",
        target(wallets::LIST_TRANSACTIONS).query("limit=10"),
        "/partners/{partner_id}/transactions",
        "No entries.",
    ),
    Section::list(
        "Credentials",
        target(credentials::LIST_CREDENTIALS).query("limit=10"),
        "/partners/{partner_id}/credentials",
        "It has no credential.",
    )
    .row_actions(CREDENTIAL_ACTIONS),
    Section::list(
        "Orders",
        target(orders::SEARCH_ORDERS).query("partner_id={partner_id}&limit=5"),
        "/orders?partner_id={partner_id}",
        "No orders.",
    )
    .columns(&[
        col("Order", "order_id"),
        col("Status", "status"),
        col("Total", "total_amount currency"),
        col("Reference", "reference"),
        col("Created", "created_at"),
    ]),
    Section::list(
        "Webhooks",
        target(webhooks::LIST_WEBHOOKS).query("partner_id={partner_id}&limit=10"),
        "/webhooks?partner_id={partner_id}",
        "It has no endpoint.",
    )
    .columns(&[
        col("Webhook", "webhook_id"),
        col("Status", "status"),
        col("Backlog", "backlog"),
        col("URL", "url"),
    ]),
    Section::new(
        "Certification in the sandbox",
        Source::Api {
            target: target(partners::GET_CERTIFICATION),
            field: "checks",
            page: "",
        },
        partners::GET_CERTIFICATION.route.columns,
        "No checks.",
    ),
    audit_of(
        "partner_id={partner_id}&limit=10",
        "/audit?partner_id={partner_id}",
    ),
];

pub(super) static PAGES: [Page; 4] = [
    Page::list(
        "/partners",
        "Partners",
        List::of(partners::LIST_PARTNERS).filters(&[
            filter("name", "Part of the name"),
            filter("partner_id", "Partner ID"),
            filter("credential_id", "Credential ID"),
        ]),
    )
    .actions(&[
        Action::new("create", "Create a partner", partners::CREATE_PARTNER)
            .inputs(&[Input::field("name", "Name"), ALLOWLIST])
            .note("In the sandbox it gets its first credential at once: the secret is shown once.")
            .shows("New partner: the secret of its credential is shown only now"),
    ]),
    Page::object(
        "/partners/{partner_id}",
        "Partner",
        Object::of(
            partners::GET_PARTNER,
            "name",
            &[
                col("ID", "partner_id"),
                col("Suspended", "suspended"),
                col("Codes blocked", "codes_blocked"),
                col("Allowlist", "allowlist"),
                col("Own rate limits", "limits"),
                col("Rate limits of all credentials", "ceilings"),
                col("Approval rule", "approval_rule"),
                col("Caps", "caps"),
                col("Catalogue", "catalogue"),
                col("Cancellation window in seconds", "cancel_window_s"),
                col("Certified", "certified_at"),
                col("Agreement signed", "agreement_signed_at"),
                col("Created", "created_at"),
                col("Changed", "updated_at"),
            ],
            SECTIONS,
        )
        .banner(banner),
    )
    .actions(ACTIONS),
    Page::list(
        "/partners/{partner_id}/transactions",
        "Ledger of",
        List::of(wallets::LIST_TRANSACTIONS).filters(&[
            filter("order_id", "Order ID"),
            choice("type", "Type", labels::<LedgerKind>),
            filter("currency", "Currency"),
            FROM,
            TO,
        ]),
    ),
    Page::list(
        "/partners/{partner_id}/credentials",
        "Credentials of",
        List::of(credentials::LIST_CREDENTIALS).row_actions(CREDENTIAL_ACTIONS),
    )
    .actions(&[ISSUE]),
];
