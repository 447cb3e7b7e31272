//! Identity provider of the operators' sign-in (OpenID Connect).

use anyhow::bail;
use clap::Args;
use secrecy::SecretString;
use vouchsafe_security::secret::expose;
use vouchsafe_sign_in::oidc::{OidcSettings, RoleMapping};

#[derive(Debug, Clone, Args)]
pub struct OidcArgs {
    /// Issuer URL of the OpenID provider at which operators sign in [default: none].
    #[arg(long, env = "VOUCHSAFE_OIDC_ISSUER", value_name = "URL")]
    oidc_issuer: Option<String>,

    /// Client ID at the OpenID provider.
    #[arg(long, env = "VOUCHSAFE_OIDC_CLIENT_ID", value_name = "ID")]
    oidc_client_id: Option<String>,

    /// Client secret at the OpenID provider.
    #[arg(
        long,
        env = "VOUCHSAFE_OIDC_CLIENT_SECRET",
        hide_env_values = true,
        value_name = "SECRET"
    )]
    oidc_client_secret: Option<SecretString>,

    /// Roles of groups and verified e-mail addresses at the OpenID provider, e.g.
    /// staff=viewer,jane@example.com=admin.
    #[arg(long, env = "VOUCHSAFE_OIDC_ROLES", value_name = "GROUP|E-MAIL=ROLE,…")]
    oidc_roles: Option<RoleMapping>,

    /// Authentication context classes (`acr`) of which one is needed for a step-up, separated by commas
    /// [default: any].
    #[arg(
        long,
        env = "VOUCHSAFE_OIDC_ACR_VALUES",
        value_name = "CLASS,…",
        value_delimiter = ','
    )]
    oidc_acr_values: Vec<String>,
}

impl OidcArgs {
    /// A list without a class would permit any, which its author cannot mean.
    fn acr_values(&self) -> anyhow::Result<Vec<String>> {
        let values = self.oidc_acr_values.iter().map(|value| value.trim().to_owned());
        let values: Vec<String> = values.collect();
        if values == [""] {
            return Ok(Vec::new());
        }
        if values.iter().any(|value| value.is_empty() || value.contains(' ')) {
            bail!(
                "VOUCHSAFE_OIDC_ACR_VALUES has an empty class or one with a space; separate classes by one \
                 comma, or remove the setting"
            );
        }
        Ok(values)
    }

    /// The provider; `None` if no setting names one. An empty variable counts as unset.
    ///
    /// # Errors
    /// If a setting is missing.
    pub fn provider(&self) -> anyhow::Result<Option<OidcSettings>> {
        let text = |setting: &Option<String>| setting.clone().filter(|text| !text.is_empty());
        let secret = self.oidc_client_secret.clone();
        let secret = secret.filter(|secret| !expose(secret).is_empty());
        match (
            text(&self.oidc_issuer),
            text(&self.oidc_client_id),
            secret,
            self.oidc_roles.clone(),
        ) {
            (Some(issuer), Some(client_id), Some(client_secret), Some(roles)) => Ok(Some(OidcSettings {
                issuer,
                client_id,
                client_secret,
                roles,
                acr_values: self.acr_values()?,
            })),
            (None, None, None, None) if self.acr_values()?.is_empty() => Ok(None),
            _ => bail!(
                "sign-in by OpenID Connect requires VOUCHSAFE_OIDC_ISSUER, VOUCHSAFE_OIDC_CLIENT_ID, \
                 VOUCHSAFE_OIDC_CLIENT_SECRET and VOUCHSAFE_OIDC_ROLES; set all of them or none, and \
                 without them no VOUCHSAFE_OIDC_ACR_VALUES"
            ),
        }
    }
}
