//! What is shown for an ID: the name of the partner, or in a table the last digits.

use std::collections::{BTreeSet, HashMap};

use vouchsafe_domain::ids::PartnerId;
use vouchsafe_wire::operator::partners::LIST_PARTNERS;

use crate::api::{AdminApi, ApiResult, get};
use crate::json::Json;

/// Partners of a request: a page of their list. A page of the console shows no more entries.
const MAX_PARTNERS: usize = 100;

/// Digits that tell the IDs of a table apart: the first ones are the time.
const SHOWN_DIGITS: usize = 8;

/// Digits of an ID and of a hash.
const LENGTHS: [usize; 2] = [32, 64];

/// Reads the target, with the names of partners.
pub(crate) async fn get_named(api: &impl AdminApi, target: String) -> ApiResult {
    let mut read = get(api, target).await?;
    name_partners(api, &mut read.json).await;
    Ok(read)
}

/// Gives the IDs of partners the names of these. If they cannot be read, the IDs stay as they are.
async fn name_partners(api: &impl AdminApi, json: &mut Json) {
    let mut ids = BTreeSet::new();
    for_each_partner(json, &mut |id| ids.extend(id.text().map(ToOwned::to_owned)));
    if ids.is_empty() {
        return;
    }
    let ids: Vec<_> = ids.into_iter().take(MAX_PARTNERS).collect();
    let path = LIST_PARTNERS.route.path;
    let query = format!("{path}?partner_id={}&limit={MAX_PARTNERS}", ids.join(","));
    let Ok(read) = get(api, query).await else {
        return;
    };
    let partners = read.json.get("data").entries().iter();
    let names =
        partners.filter_map(|partner| Some((partner.get("partner_id").text()?, partner.get("name").text()?)));
    let names: HashMap<&str, &str> = names.collect();
    for_each_partner(json, &mut |value| {
        let id = value.text().unwrap_or_default().to_owned();
        if let Some(name) = names.get(id.as_str()) {
            let label = (*name).to_owned();
            *value = Json::Id { id, label };
        }
    });
}

/// Visits the IDs of partners, but for those that stand beside a name.
fn for_each_partner(json: &mut Json, visit: &mut impl FnMut(&mut Json)) {
    match json {
        Json::Object(fields) => {
            let is_named = fields.iter().any(|(field, _)| field == "name");
            for (field, value) in fields {
                if !(is_named && field == "partner_id") {
                    for_each_partner(value, visit);
                }
            }
        }
        Json::Text(id) if id.parse::<PartnerId>().is_ok() => visit(json),
        Json::List(entries) => entries
            .iter_mut()
            .for_each(|entry| for_each_partner(entry, visit)),
        _ => {}
    }
}

/// A row of a table, with its IDs shortened.
pub(crate) fn shorten(row: &Json) -> Json {
    match row {
        Json::Text(text) => match short(text) {
            Some(label) => Json::Id {
                id: text.clone(),
                label,
            },
            None => row.clone(),
        },
        Json::List(entries) => Json::List(entries.iter().map(shorten).collect()),
        Json::Object(fields) => {
            let fields = fields
                .iter()
                .map(|(field, value)| (field.clone(), shorten(value)));
            Json::Object(fields.collect())
        }
        other => other.clone(),
    }
}

/// Prefix and last digits of an ID, also of a trace or a hash, which have no prefix.
fn short(text: &str) -> Option<String> {
    let (prefix, digits) = text.rsplit_once('_').unwrap_or(("", text));
    let is_id = LENGTHS.contains(&digits.len())
        && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
        && prefix.bytes().all(|byte| byte.is_ascii_lowercase());
    let (begin, end) = text.split_at_checked(text.len() - digits.len())?;
    is_id.then(|| format!("{begin}…{}", &end[end.len() - SHOWN_DIGITS..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARTNER: &str = "ptn_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f";

    #[test]
    fn ids_of_a_row_are_short_and_keep_their_value() {
        let text = format!(
            r#"{{"order_id":"ord_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f","note":"ord_1","ids":["{PARTNER}"]}}"#
        );
        let row = shorten(&Json::parse(text.as_bytes()));
        assert_eq!(row.to_string(), text);
        let label = |value: &Json| match value {
            Json::Id { label, .. } => label.clone(),
            _ => String::new(),
        };
        assert_eq!(label(row.get("order_id")), "ord_…2c3d4e5f");
        assert_eq!(label(row.get("ids.last")), "ptn_…2c3d4e5f");
        assert_eq!(label(row.get("note")), "");
        assert_eq!(short(&"a".repeat(64)).unwrap(), "…aaaaaaaa");
        assert_eq!(short("stock_import"), None);
    }

    #[test]
    fn partner_beside_its_name_is_not_named_again() {
        let text = format!(
            r#"{{"data":[{{"partner_id":"{PARTNER}","name":"A"}},{{"partner_id":"{PARTNER}","order":{{"partner_id":"{PARTNER}"}}}},
               {{"partner_id":"&limit=1"}}]}}"#
        );
        let mut json = Json::parse(text.as_bytes());
        let mut visited = 0;
        for_each_partner(&mut json, &mut |_| visited += 1);
        assert_eq!(visited, 2);
    }
}
