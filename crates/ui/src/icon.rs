//! Icons of the navigation: Lucide's, inlined.

use maud::{Markup, PreEscaped, html};

/// An icon. The text beside it says what it means.
#[derive(Clone, Copy)]
pub struct Icon {
    svg: &'static str,
}

macro_rules! icons {
    ($($name:ident = $file:literal;)+) => {
        $(pub const $name: Icon = Icon {
            svg: include_str!(concat!("../assets/third-party/icons/", $file, ".svg")),
        };)+
    };
}

icons! {
    OVERVIEW = "layout-dashboard";
    ORDERS = "shopping-cart";
    PAYOUTS = "banknote";
    REQUESTS = "list-checks";
    BULK_JOBS = "layers";
    PARTNERS = "building-2";
    WEBHOOKS = "webhook";
    DELIVERIES = "send";
    PRODUCTS = "gift";
    CATEGORIES = "tags";
    STOCK = "package";
    EXPIRY = "calendar-clock";
    VENDORS = "factory";
    PURCHASES = "receipt-text";
    DRIFTS = "git-compare";
    RECONCILIATION = "scale";
    ACTORS = "cpu";
    NODES = "server";
    REFUSALS = "ban";
    SETTINGS = "sliders-horizontal";
    AUDIT = "scroll-text";
    CHECKPOINTS = "stamp";
    OPERATORS = "users";
    SESSIONS = "monitor-smartphone";
    DOCUMENTATION = "book-open";
}

impl Icon {
    #[must_use]
    pub fn render(self) -> Markup {
        // The file has the same frame for every icon.
        let shapes = self
            .svg
            .split_once("<svg")
            .and_then(|(_, svg)| svg.split_once('>'));
        let shapes = shapes.and_then(|(_, rest)| rest.split_once("</svg>"));
        let shapes = shapes.map_or("", |(shapes, _)| shapes.trim());
        html! { svg.icon viewBox="0 0 24 24" aria-hidden="true" { (PreEscaped(shapes)) } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn icon_has_its_shapes_and_no_text() {
        let svg = ORDERS.render().into_string();
        assert!(svg.starts_with("<svg class=\"icon\" viewBox=\"0 0 24 24\" aria-hidden=\"true\"><"));
        assert!(svg.contains("<path d=") && svg.ends_with("/></svg>"), "{svg}");
    }
}
