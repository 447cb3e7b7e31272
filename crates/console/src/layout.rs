//! Layout of all pages: head, environment banner, navigation, search and content.

use maud::{DOCTYPE, Markup, html};
use vouchsafe_domain::operator::Role;
use vouchsafe_ui::head;

use vouchsafe_ui::icon::{self, Icon};

use crate::time_input::suggestions;

/// The signed-in operator and the process that responds.
pub struct Viewer {
    pub name: String,
    pub role: Role,
    /// `sandbox` or `production`.
    pub environment: &'static str,
    /// Identifies this rendering of a page.
    pub page_id: String,
}

/// Path, name and icon of a page.
type NavigationEntry = (&'static str, &'static str, Icon);

/// Pages of the navigation, by group.
const NAVIGATION: [(&str, &[NavigationEntry]); 6] = [
    (
        "Decisions",
        &[
            ("/", "Overview", icon::OVERVIEW),
            ("/orders", "Orders", icon::ORDERS),
            ("/payouts", "Payouts", icon::PAYOUTS),
            ("/requests", "Requests", icon::REQUESTS),
            ("/bulk-jobs", "Bulk jobs", icon::BULK_JOBS),
        ],
    ),
    (
        "Partners",
        &[
            ("/partners", "Partners", icon::PARTNERS),
            ("/webhooks", "Webhooks", icon::WEBHOOKS),
            ("/deliveries", "Deliveries", icon::DELIVERIES),
        ],
    ),
    (
        "Supply",
        &[
            ("/products", "Products", icon::PRODUCTS),
            ("/categories", "Categories", icon::CATEGORIES),
            ("/stock", "Stock", icon::STOCK),
            ("/expiries", "Expiries", icon::EXPIRY),
            ("/vendors", "Vendors", icon::VENDORS),
            ("/purchases", "Purchases", icon::PURCHASES),
            ("/drifts", "Drifts", icon::DRIFTS),
            ("/reconciliation", "Reconciliation", icon::RECONCILIATION),
        ],
    ),
    (
        "Service",
        &[
            ("/actors", "Actors", icon::ACTORS),
            ("/nodes", "Nodes and lanes", icon::NODES),
            ("/refusals", "Refused requests", icon::REFUSALS),
            ("/settings", "Settings", icon::SETTINGS),
        ],
    ),
    (
        "Access",
        &[
            ("/audit", "Audit trail", icon::AUDIT),
            ("/audit/checkpoints", "Checkpoints", icon::CHECKPOINTS),
            ("/operators", "Operators", icon::OPERATORS),
            ("/sessions", "Sessions", icon::SESSIONS),
        ],
    ),
    ("More", &[("/docs", "Documentation", icon::DOCUMENTATION)]),
];

/// Renders a page. `path` marks the current entry of the navigation.
pub(crate) fn render(viewer: &Viewer, path: &str, title: &str, content: &Markup) -> Markup {
    let section = path.split('/').nth(1).unwrap_or_default();
    html! {
        (DOCTYPE)
        html lang="en" {
            (head(title))
            body {
                a.skip href="#content" { "Skip to content" }
                header {
                    // Narrow windows show the navigation as a popover: it needs no script, and Escape closes
                    // it.
                    button.menu type="button" popovertarget="menu" { "Menu" }
                    a.home href="/" { "Vouchsafe" }
                    span class={ "environment " (viewer.environment) } { (viewer.environment) }
                    form.search role="search" action="/search" {
                        input type="search" name="q" aria-label="ID, name, reference or trace" placeholder="ID, name, reference or trace" aria-keyshortcuts="/"
                            autocomplete="off" spellcheck="false";
                    }
                    span.zone title="Point at a time to see it in the time of your browser" { "Times in UTC" }
                    a.viewer href="/account" { (viewer.name) " · " (viewer.role.into_str()) }
                }
                nav #menu popover aria-label="Pages" {
                    @for (group, pages) in NAVIGATION {
                        h2 { (group) }
                        ul {
                            @for (page, name, icon) in pages {
                                li {
                                    a href=(page) aria-current=[(&page[1..] == section).then_some("page")] {
                                        (icon.render()) (name)
                                    }
                                }
                            }
                        }
                    }
                }
                main #content tabindex="-1" { (content) }
                (suggestions())
            }
        }
    }
}
