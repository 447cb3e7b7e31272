//! Partners: search, terms, credentials, wallets and ledger, certification.

mod limit_inputs;

use vouchsafe_domain::ledger::LedgerKind;
use vouchsafe_domain::revocation::DescendantPolicy;
use vouchsafe_wire::operator::{credentials, orders, partners, wallets, webhooks};

use self::limit_inputs::{CEILINGS, LIMITS};
use super::audit_of;
use crate::json::Json;
use crate::page::{
    Action, Column, FROM, Input, InputKind, List, Object, Page, Section, Source, TO, View, choice, col,
    filter, labels, link, target,
};

const ALLOWLIST: Input = Input::new("allowlist", "Allowlist", InputKind::Lines)
    .hint("Networks or addresses, one per line. An empty list denies all.");

const POSTING: [Input; 3] = [
    Input::line("currency", "Currency").hint("Such as USD."),
    Input::line("amount", "Amount").hint("Such as 1000.00."),
    Input::line("reference", "Reference")
        .hint("Such as the number of a bank statement. The amount is posted once per reference."),
];

const fn instant(name: &'static str, label: &'static str) -> Input {
    Input::line(name, label)
        .current()
        .hint("Such as 2026-11-20T12:00:00Z. Empty: none.")
}

fn is_suspended(partner: &Json) -> bool {
    *partner.get("suspended") == Json::Bool(true)
}

const fn change(slug: &'static str, label: &'static str, inputs: &'static [Input]) -> Action {
    Action::new(slug, label, partners::CHANGE_PARTNER)
        .inputs(inputs)
        .done("The terms were changed. They apply from the next request.")
}

const TRANSACTION_COLUMNS: [Column; 8] = [
    col("Time", "created_at"),
    col("Type", "type"),
    col("Amount", "amount currency"),
    col("Balance", "balance_after"),
    col("Order", "order_id"),
    col("Payout", "payout_id"),
    col("Reference", "reference"),
    col("Transaction", "transaction_id"),
];

const CREDENTIAL_COLUMNS: [Column; 8] = [
    col("Credential", "credential_id"),
    col("In force", "live"),
    col("Allowlist", "allowlist"),
    col("Scopes", "scopes"),
    col("From", "not_before"),
    col("Until", "not_after"),
    col("Revoked", "revoked_at"),
    col("Rotated from", "rotated_from"),
];

fn is_live(credential: &Json) -> bool {
    *credential.get("live") == Json::Bool(true)
}

const CREDENTIAL_ACTIONS: &[Action] = &[
    Action::new("rotate", "Rotate", credentials::ROTATE_CREDENTIAL)
        .inputs(&[Input::new(
            "overlap_seconds",
            "Seconds until this credential ends",
            InputKind::Number,
        )
        .optional()
        .hint("0 to 604800. Empty: a day.")])
        .when(is_live)
        .note("Issues its successor, whose secret is shown once, and ends this credential.")
        .shows("New credential: its secret is shown only now"),
    Action::new("revoke", "Revoke", credentials::REVOKE_CREDENTIAL)
        .query("descendants={descendants}")
        .inputs(&[Input::new(
            "descendants",
            "Credentials rotated from it",
            InputKind::Choice(labels::<DescendantPolicy>),
        )])
        .when(is_live)
        .note("Requests with this credential, and with those rotated from it, are refused from now on.")
        .shows("The credential was revoked"),
];

const ISSUE: Action = Action::new("issue", "Issue a credential", credentials::ISSUE_CREDENTIAL)
    .inputs(&[
        Input::new("allowlist", "Allowlist of the credential", InputKind::Lines)
            .optional()
            .hint("Narrower than the partner's, one network per line."),
        Input::new("scopes", "Scopes of the credential", InputKind::Lines)
            .optional()
            .hint("orders, codes, read, payouts or webhooks, one per line. Empty: all."),
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
    change("allowlist", "Change the allowlist", &[ALLOWLIST.prefilled()]),
    change("limits", "Change rate limits", &LIMITS),
    change("ceilings", "Change rate limits of all credentials", &CEILINGS),
    // A form of its own: a change of the rule needs a second operator, and the other terms do not.
    change(
        "approval-rule",
        "Change the approval rule",
        &[Input::new("approval_rule", "Approval rule", InputKind::Json)
            .current()
            .hint("JSON such as {\"amount_over\":{\"USD\":\"500.00\"},\"other_currencies\":\"approve\",\"first_orders\":3}. Empty: none.")],
    ),
    // Its own form for the same reason.
    change(
        "caps",
        "Change the caps",
        &[Input::new("caps", "Caps", InputKind::Json)
            .current()
            .hint("JSON such as {\"pending_orders\":50,\"cancellations_per_day\":20,\"spend_per_day\":{\"USD\":\"5000.00\"},\"approval_over\":{\"within_s\":600,\"orders\":30}}. {}: none. Empty: those of the settings.")],
    ),
    change(
        "terms",
        "Change catalogue and cancellation",
        &[
            Input::new("catalogue", "Catalogue", InputKind::Json)
                .current()
                .hint("JSON such as {\"categories\":[\"gaming\"],\"products\":[]}. Empty: all products."),
            Input::new("cancel_window_s", "Cancellation window", InputKind::Number)
                .current()
                .hint("In seconds. Empty: the default."),
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
        &[Input::new("codes_blocked", "Also block reads of codes that it has paid for", InputKind::Flag).optional()],
    )
    .fixed(&[("suspended", "true")])
    .when(|partner| !is_suspended(partner))
    .done("The partner is suspended."),
    change("resume", "Resume", &[])
        .fixed(&[("suspended", "false"), ("codes_blocked", "false")])
        .when(is_suspended)
        .done("The partner is no longer suspended."),
    Action::new("restart-certification",
        "Start certification over", partners::RESTART_CERTIFICATION)
    .note("Discards the observations of the sandbox.")
    .done("The observations were discarded."),
];

const SECTIONS: &[Section] = &[
    Section {
        heading: "Wallets",
        source: Source::Api {
            target: target(wallets::LIST_WALLETS),
            field: "data",
            page: "",
        },
        columns: &[
            col("Currency", "currency"),
            col("Balance", "balance"),
            col("In orders", "pending_orders"),
            col("In payouts", "pending_payouts"),
            col("Changed", "updated_at"),
        ],
        row_actions: &[],
        none: "It has no wallet: the first top-up makes one.",
    },
    Section {
        heading: "Rate limits",
        source: Source::Api {
            target: target(partners::LIST_LIMIT_USE).query("limit=100"),
            field: "data",
            page: "",
        },
        columns: &[
            col("Credential", "credential_id"),
            col("Class", "class"),
            col("Used", "used"),
            col("Quota", "quota"),
            col("Seconds", "window_s"),
            col("Default limit", "is_default"),
        ],
        row_actions: &[],
        none: "It has no live credential.",
    },
    Section {
        heading: "Ledger",
        source: Source::Api {
            target: target(wallets::LIST_TRANSACTIONS).query("limit=10"),
            field: "data",
            page: "/partners/{partner_id}/transactions",
        },
        columns: &TRANSACTION_COLUMNS,
        row_actions: &[],
        none: "No entries.",
    },
    Section {
        heading: "Credentials",
        source: Source::Api {
            target: target(credentials::LIST_CREDENTIALS).query("limit=10"),
            field: "data",
            page: "/partners/{partner_id}/credentials",
        },
        columns: &CREDENTIAL_COLUMNS,
        row_actions: CREDENTIAL_ACTIONS,
        none: "It has no credential.",
    },
    Section {
        heading: "Orders",
        source: Source::Api {
            target: target(orders::SEARCH_ORDERS).query("partner_id={partner_id}&limit=5"),
            field: "data",
            page: "/orders?partner_id={partner_id}",
        },
        columns: &[
            col("Order", "order_id"),
            col("Status", "status"),
            col("Total", "total_amount currency"),
            col("Reference", "reference"),
            col("Created", "created_at"),
        ],
        row_actions: &[],
        none: "No orders.",
    },
    Section {
        heading: "Webhooks",
        source: Source::Api {
            target: target(webhooks::LIST_WEBHOOKS).query("partner_id={partner_id}&limit=10"),
            field: "data",
            page: "/webhooks?partner_id={partner_id}",
        },
        columns: &[
            col("Webhook", "webhook_id"),
            col("Status", "status"),
            col("Backlog", "backlog"),
            col("URL", "url"),
        ],
        row_actions: &[],
        none: "It has no endpoint.",
    },
    Section {
        heading: "Certification in the sandbox",
        source: Source::Api {
            target: target(partners::GET_CERTIFICATION),
            field: "checks",
            page: "",
        },
        columns: &[
            col("Check", "check"),
            col("State", "state"),
            col("Observed", "at"),
            col("Reason", "reason"),
            col("Advice", "advice"),
        ],
        row_actions: &[],
        none: "No checks.",
    },
    audit_of(
        "partner_id={partner_id}&limit=10",
        "/audit?partner_id={partner_id}",
    ),
];

pub(super) static PAGES: [Page; 4] = [
    Page {
        path: "/partners",
        title: "Partners",
        view: View::List(List {
            api: target(partners::LIST_PARTNERS),
            columns: &[
                link("Name", "name", "/partners/{partner_id}"),
                col("Partner", "partner_id"),
                col("Suspended", "suspended"),
                col("Certified", "certified_at"),
                col("Created", "created_at"),
            ],
            filters: &[
                filter("name", "Part of the name"),
                filter("partner_id", "Partner ID"),
                filter("credential_id", "Credential ID"),
            ],
            row_actions: &[],
            is_complete: true,
            variants: &[],
        }),
        actions: &[
            Action::new("create", "Create a partner", partners::CREATE_PARTNER)
                .inputs(&[Input::line("name", "Name"), ALLOWLIST])
                .note("In the sandbox it gets its first credential at once: the secret is shown once.")
                .shows("New partner: the secret of its credential is shown only now"),
        ],
    },
    Page {
        path: "/partners/{partner_id}",
        title: "Partner",
        view: View::Object(Object {
            none: "",
            api: Some(target(partners::GET_PARTNER)),
            name: "name",
            facts: &[
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
            sections: SECTIONS,
        }),
        actions: ACTIONS,
    },
    Page {
        path: "/partners/{partner_id}/transactions",
        title: "Ledger of",
        view: View::List(List {
            api: target(wallets::LIST_TRANSACTIONS),
            columns: &TRANSACTION_COLUMNS,
            filters: &[
                filter("order_id", "Order ID"),
                choice("type", "Type", labels::<LedgerKind>),
                filter("currency", "Currency"),
                FROM,
                TO,
            ],
            row_actions: &[],
            is_complete: true,
            variants: &[],
        }),
        actions: &[],
    },
    Page {
        path: "/partners/{partner_id}/credentials",
        title: "Credentials of",
        view: View::List(List {
            api: target(credentials::LIST_CREDENTIALS),
            columns: &CREDENTIAL_COLUMNS,
            filters: &[],
            row_actions: CREDENTIAL_ACTIONS,
            is_complete: true,
            variants: &[],
        }),
        actions: &[ISSUE],
    },
];
