//! Authorization request with PKCE (OpenID Connect Core 3.1.2.1, RFC 7636): the URL to which a browser is
//! sent.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::digest::{SHA256, digest};
use url::Url;

use super::metadata::ProviderMetadata;
use super::pending::{PendingSignIn, SignInPurpose};

/// Seconds since the authentication with which a step-up begins. Less than those for which it counts: the
/// person has work to do.
const STEP_UP_MAX_AGE_S: i64 = 300;

pub(super) fn authorization_url(
    metadata: &ProviderMetadata,
    client_id: &str,
    redirect_uri: &str,
    pending: &PendingSignIn,
    acr_values: &[String],
) -> Url {
    let mut url = Url::clone(&metadata.authorization_endpoint);
    // The endpoint may have a query of its own, which stays (RFC 6749 3.1).
    url.query_pairs_mut()
        .append_pair("response_type", "code")
        .append_pair("client_id", client_id)
        .append_pair("state", &pending.state)
        .append_pair("code_challenge", &code_challenge(&pending.verifier))
        .append_pair("code_challenge_method", "S256")
        .append_pair("redirect_uri", redirect_uri)
        .append_pair("scope", metadata.scope())
        .append_pair("nonce", &pending.nonce);
    if pending.purpose == SignInPurpose::StepUp {
        url.query_pairs_mut()
            .append_pair("max_age", &STEP_UP_MAX_AGE_S.to_string());
        if !acr_values.is_empty() {
            url.query_pairs_mut()
                .append_pair("acr_values", &acr_values.join(" "));
        }
    }
    url
}

fn code_challenge(verifier: &str) -> String {
    URL_SAFE_NO_PAD.encode(digest(&SHA256, verifier.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::next_path::NextPath;

    #[test]
    fn url_has_the_parameters_of_the_sign_in_and_the_challenge_of_its_verifier() {
        let document = r#"{
            "issuer": "https://id.example", "authorization_endpoint": "https://id.example/authorize?tenant=a",
            "token_endpoint": "https://id.example/token", "jwks_uri": "https://id.example/keys",
            "scopes_supported": ["groups"]
        }"#;
        let metadata = ProviderMetadata::parse(document.as_bytes(), "https://id.example").unwrap();
        let mut pending = PendingSignIn {
            state: "a state&".to_owned(),
            nonce: "a-nonce".to_owned(),
            // The example of RFC 7636, appendix B.
            verifier: "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk".to_owned(),
            next: NextPath::parse_or_root("/"),
            begun_at_s: 0,
            purpose: SignInPurpose::Session,
        };
        let redirect_uri = "https://console.example/sign-in/callback";
        let acr_values = ["gold".to_owned(), "silver".to_owned()];
        let url = authorization_url(&metadata, "vouchsafe", redirect_uri, &pending, &acr_values);
        assert_eq!(
            url.as_str(),
            "https://id.example/authorize?tenant=a&response_type=code&client_id=vouchsafe&state=a+state%26\
             &code_challenge=E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM&code_challenge_method=S256\
             &redirect_uri=https%3A%2F%2Fconsole.example%2Fsign-in%2Fcallback&scope=openid+email+profile+groups\
             &nonce=a-nonce"
        );
        pending.purpose = SignInPurpose::StepUp;
        let step_up = authorization_url(&metadata, "vouchsafe", redirect_uri, &pending, &acr_values);
        assert_eq!(
            step_up.as_str(),
            format!("{url}&max_age=300&acr_values=gold+silver")
        );
        let any = authorization_url(&metadata, "vouchsafe", redirect_uri, &pending, &[]);
        assert_eq!(any.as_str(), format!("{url}&max_age=300"));
    }
}
