//! Mapping of the groups and e-mail addresses of an identity provider to roles, and of addresses to operator
//! names.

use std::str::FromStr;

use vouchsafe_domain::operator::{OperatorName, Role};

/// Who has which role, as text `SELECTOR=ROLE,…`. A selector with `@` is an e-mail address, any other a
/// group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoleMapping(Vec<(String, Role)>);

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected GROUP=ROLE or E-MAIL=ROLE, comma-separated, with the roles viewer, operator and admin")]
pub struct InvalidRoleMapping;

/// A person as the provider knows them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// Never given to another person by the provider.
    pub subject: String,
    /// Only if the provider has verified it; in lower case.
    pub email: Option<String>,
    pub groups: Vec<String>,
    /// When the provider has authenticated the person, if the ID token says so and its class counts for a
    /// step-up. Unix time.
    pub authenticated_at_s: Option<i64>,
}

impl RoleMapping {
    /// Whether a person's groups decide on the role.
    #[must_use]
    pub fn has_groups(&self) -> bool {
        self.0.iter().any(|(selector, _)| !selector.contains('@'))
    }

    /// The highest role of a person, if there is any.
    #[must_use]
    pub fn role_of(&self, identity: &Identity) -> Option<Role> {
        let matches = |selector: &str| {
            if selector.contains('@') {
                identity.email.as_deref() == Some(selector)
            } else {
                identity.groups.iter().any(|group| group == selector)
            }
        };
        let roles = self.0.iter().filter(|(selector, _)| matches(selector));
        roles.map(|(_, role)| *role).max()
    }
}

impl FromStr for RoleMapping {
    type Err = InvalidRoleMapping;

    fn from_str(text: &str) -> Result<Self, InvalidRoleMapping> {
        let entries = text.split(',').map(|entry| {
            let (selector, role) = entry.rsplit_once('=')?;
            let selector = selector.trim();
            let selector = if selector.contains('@') {
                selector.to_lowercase()
            } else {
                selector.to_owned()
            };
            let role = role.trim().parse().ok()?;
            (!selector.is_empty()).then_some((selector, role))
        });
        entries.collect::<Option<_>>().map(Self).ok_or(InvalidRoleMapping)
    }
}

impl Identity {
    /// The name of the operator's account: the verified e-mail address. Characters that names do not have
    /// become `-`; the account belongs to the subject that came first, so two addresses with one name do not
    /// share it.
    #[must_use]
    pub fn operator_name(&self) -> Option<OperatorName> {
        let is_permitted =
            |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || ".@-".contains(letter);
        let name = self.email.as_deref()?;
        // Two addresses must not have one name, nor a person the name of an account that is no address.
        let is_name = name.contains('@') && name.chars().all(is_permitted);
        is_name.then(|| name.parse().ok()).flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(email: Option<&str>, groups: &[&str]) -> Identity {
        Identity {
            authenticated_at_s: None,
            subject: "s".to_owned(),
            email: email.map(ToOwned::to_owned),
            groups: groups.iter().map(|group| (*group).to_owned()).collect(),
        }
    }

    #[test]
    fn person_has_the_highest_mapped_role_or_none() {
        let mapping: RoleMapping = "staff=viewer, Ops Team =operator,cn=x=admin,Jane@Example.com=admin"
            .parse()
            .unwrap();
        for (email, groups, expected) in [
            (None, &["staff"][..], Some(Role::Viewer)),
            (None, &["staff", "Ops Team"], Some(Role::Operator)),
            (None, &["cn=x"], Some(Role::Admin)),
            (Some("jane@example.com"), &["staff"], Some(Role::Admin)),
            (Some("jane@example.com.evil.example"), &[], None),
            (None, &["Staff", "jane@example.com", ""], None),
        ] {
            assert_eq!(
                mapping.role_of(&identity(email, groups)),
                expected,
                "{email:?} {groups:?}"
            );
        }
        for invalid in ["", "staff", "staff=", "=viewer", "staff=owner", "staff=viewer,"] {
            assert_eq!(
                invalid.parse::<RoleMapping>(),
                Err(InvalidRoleMapping),
                "{invalid}"
            );
        }
    }

    #[test]
    fn operator_name_is_the_verified_address() {
        let name = |email| identity(email, &[]).operator_name().map(|name| name.to_string());
        assert_eq!(
            name(Some("jane@example.com")).as_deref(),
            Some("jane@example.com")
        );
        for unusable in [
            None,
            Some("admin"),
            Some(""),
            Some("_a@example.com"),
            Some("jane_d@example.com"),
        ] {
            assert_eq!(name(unusable), None, "{unusable:?}");
        }
        assert_eq!(name(Some(&format!("{}@example.com", "a".repeat(64)))), None);
    }
}
