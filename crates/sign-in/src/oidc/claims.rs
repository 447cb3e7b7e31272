//! Claims of an ID token or of the userinfo endpoint that identify a person, and how the two are combined.

use serde::{Deserialize, Deserializer};

use super::roles::{Identity, RoleMapping};

/// The claims as a provider sends them.
#[derive(Deserialize)]
struct SourceClaims {
    email: Option<String>,
    email_verified: Option<bool>,
    /// `None` if the claim is absent, which is not the same as a person without groups.
    #[serde(default, deserialize_with = "one_or_many")]
    groups: Option<Vec<String>>,
}

/// A claim with one value may be a string instead of a list: the audience of a token always, a person's only
/// group at some providers.
pub(super) fn one_or_many<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Vec<String>>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Values {
        One(String),
        Many(Vec<String>),
    }
    Ok(Option::deserialize(deserializer)?.map(|values| match values {
        Values::One(value) => vec![value],
        Values::Many(values) => values,
    }))
}

/// What one source says about a person.
#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "SourceClaims")]
pub(super) struct PersonClaims {
    /// The address and whether it is verified; `None` if the source lacks one of the two.
    email: Option<(String, bool)>,
    groups: Option<Vec<String>>,
}

impl From<SourceClaims> for PersonClaims {
    fn from(claims: SourceClaims) -> Self {
        // Other letters than ASCII may become ASCII in lower case, and with it another person's address.
        let email = claims.email.map(|email| email.to_ascii_lowercase());
        Self {
            email: email.zip(claims.email_verified),
            groups: claims.groups,
        }
    }
}

impl PersonClaims {
    /// Whether a claim is missing that decides on the person's name or role.
    pub(super) fn lacks_any_of(&self, mapping: &RoleMapping) -> bool {
        self.email.is_none() || (mapping.has_groups() && self.groups.is_none())
    }

    /// Adds claims of another source. An address keeps the verification of its own source.
    pub(super) fn or(self, other: Self) -> Self {
        Self {
            email: self.email.or(other.email),
            groups: self.groups.or(other.groups),
        }
    }

    pub(super) fn into_identity(self, subject: String, authenticated_at_s: Option<i64>) -> Identity {
        Identity {
            subject,
            authenticated_at_s,
            email: self
                .email
                .and_then(|(email, is_verified)| is_verified.then_some(email)),
            groups: self.groups.unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn groups(json: &str) -> Option<Option<Vec<String>>> {
        serde_json::from_str::<PersonClaims>(json)
            .ok()
            .map(|claims| claims.groups)
    }

    #[test]
    fn groups_are_a_list_or_one_string() {
        let one = || Some(Some(vec!["staff".to_owned()]));
        assert_eq!(groups(r#"{"groups":"staff"}"#), one());
        assert_eq!(groups(r#"{"groups":["staff"]}"#), one());
        assert_eq!(groups(r#"{"groups":[]}"#), Some(Some(vec![])));
        assert_eq!(groups(r#"{"groups":null}"#), Some(None));
        assert_eq!(groups("{}"), Some(None));
        assert_eq!(groups(r#"{"groups":7}"#), None);
        assert_eq!(groups(r#"{"groups":[{"name":"staff"}]}"#), None);
    }

    fn person(email: Option<&str>, is_verified: Option<bool>, groups: Option<&[&str]>) -> PersonClaims {
        let groups = groups.map(|groups| groups.iter().map(|group| (*group).to_owned()).collect());
        PersonClaims::from(SourceClaims {
            email: email.map(ToOwned::to_owned),
            email_verified: is_verified,
            groups,
        })
    }

    #[test]
    fn userinfo_is_needed_for_a_missing_address_or_missing_groups_of_the_mapping() {
        let by_group: RoleMapping = "staff=viewer".parse().unwrap();
        let by_email: RoleMapping = "jane@example.com=viewer".parse().unwrap();
        let email = Some("Jane@Example.com");
        for (claims, lacks_by_group, lacks_by_email) in [
            (person(email, Some(true), Some(&["staff"])), false, false),
            (person(email, Some(true), Some(&[])), false, false),
            (person(email, Some(true), None), true, false),
            (person(email, Some(false), Some(&[])), false, false),
            (person(email, None, Some(&["staff"])), true, true),
            (person(None, Some(true), Some(&["staff"])), true, true),
        ] {
            assert_eq!(claims.lacks_any_of(&by_group), lacks_by_group, "{claims:?}");
            assert_eq!(claims.lacks_any_of(&by_email), lacks_by_email, "{claims:?}");
        }
    }

    #[test]
    fn verification_belongs_to_the_address_of_its_source() {
        let unverified = person(Some("boss@example.com"), Some(false), None);
        let other = || person(Some("jane@example.com"), Some(true), Some(&["staff"]));
        let identity = unverified.or(other()).into_identity("1".to_owned(), None);
        assert_eq!(
            (identity.email, identity.groups),
            (None, vec!["staff".to_owned()])
        );
        let incomplete = person(Some("boss@example.com"), None, None);
        let identity = incomplete.or(other()).into_identity("1".to_owned(), None);
        assert_eq!(identity.email.as_deref(), Some("jane@example.com"));
    }
}
