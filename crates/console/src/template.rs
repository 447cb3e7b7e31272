//! Paths and queries with placeholders, such as `/orders/{order_id}`, and their values.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// All but the unreserved characters of RFC 3986.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// Segment of a path whose value is missing: an empty one would be the path of another operation. No object
/// has this name.
const NO_NAME: &str = "-";

/// Values of placeholders.
pub(crate) type Params = Vec<(&'static str, String)>;

pub(crate) fn encode(text: &str) -> String {
    utf8_percent_encode(text, RESERVED).to_string()
}

/// The names of the placeholders.
pub(crate) fn placeholders(template: &'static str) -> impl Iterator<Item = &'static str> {
    template
        .split('{')
        .skip(1)
        .filter_map(|rest| rest.split_once('}').map(|(name, _)| name))
}

/// Fills the placeholders with encoded values. A parameter of the query without a value is left out.
pub(crate) fn fill(template: &'static str, value: impl Fn(&str) -> Option<String>) -> String {
    let (path, query) = template.split_once('?').unwrap_or((template, ""));
    fill_parts(path, query, value)
}

/// Fills the placeholders of a path and of a query.
pub(crate) fn fill_parts(
    path: &'static str,
    query: &'static str,
    value: impl Fn(&str) -> Option<String>,
) -> String {
    let fill_part = |part: &'static str| {
        let mut filled = part.to_owned();
        for name in placeholders(part) {
            let value = value(name).filter(|value| !value.is_empty());
            filled = filled.replace(&format!("{{{name}}}"), &encode(&value?));
        }
        Some(filled)
    };
    let segments = path
        .split('/')
        .map(|segment| fill_part(segment).unwrap_or_else(|| NO_NAME.to_owned()));
    let path = segments.collect::<Vec<_>>().join("/");
    let parameters: Vec<_> = query
        .split('&')
        .filter(|parameter| !parameter.is_empty())
        .filter_map(fill_part)
        .collect();
    if parameters.is_empty() {
        return path;
    }
    format!("{path}?{}", parameters.join("&"))
}

/// The parameters in a path, if it matches the template.
pub(crate) fn matches(template: &'static str, path: &str) -> Option<Params> {
    let (mut expected, mut given) = (template.split('/'), path.split('/'));
    let mut params = Vec::new();
    loop {
        match (expected.next(), given.next()) {
            (None, None) => return Some(params),
            (Some(expected), Some(given)) => match placeholders(expected).next() {
                Some(name) => {
                    let value = percent_decode_str(given).decode_utf8().ok()?;
                    params.push((name, Some(value.into_owned()).filter(|value| !value.is_empty())?));
                }
                None if expected == given => {}
                None => return None,
            },
            _ => return None,
        }
    }
}

pub(crate) fn find<'a>(params: &'a [(&'static str, String)], name: &str) -> Option<&'a str> {
    params
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, value)| value.as_str())
}

/// The pairs of a query or form; none if it is malformed.
pub(crate) fn pairs(text: &[u8]) -> Vec<(String, String)> {
    serde_urlencoded::from_bytes(text).unwrap_or_default()
}

pub(crate) fn query(pairs: &[(String, String)]) -> String {
    serde_urlencoded::to_string(pairs).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn template_encodes_values_and_leaves_out_empty_parameters() {
        let value = |name: &str| {
            Some(if name == "id" {
                "a/b&c=d é".to_owned()
            } else {
                String::new()
            })
        };
        assert_eq!(fill("/orders/{id}", value), "/orders/a%2Fb%26c%3Dd%20%C3%A9");
        assert_eq!(
            fill("/audit?subject={id}&limit=5&x={y}", value),
            "/audit?subject=a%2Fb%26c%3Dd%20%C3%A9&limit=5"
        );
        assert_eq!(fill("/a?x={y}", value), "/a");
        assert_eq!(fill("/wallets/{y}/top-ups", value), "/wallets/-/top-ups");
    }

    #[test]
    fn path_matches_its_template_only() {
        let template = "/partners/{partner_id}/wallets";
        assert_eq!(
            matches(template, "/partners/a%2Fb/wallets"),
            Some(vec![("partner_id", "a/b".to_owned())])
        );
        for path in [
            "/partners/a",
            "/partners//wallets",
            "/partners/a/wallets/",
            "/partners/%ff/wallets",
            "/",
        ] {
            assert_eq!(matches(template, path), None, "{path}");
        }
    }
}
