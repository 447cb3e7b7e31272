//! Sample requests of an endpoint: `curl`, and the languages of the signers in `docs/partner/signers`.

mod csharp;
mod go;
mod java;
mod javascript;
mod php;
mod python;

use maud::{Markup, html};

use vouchsafe_security::framing::API_PREFIX;

use super::body::{example, example_of};
use super::document::{Document, Operation, entries, items, text};
use crate::pages::code::{self, Tab};

/// How a request is authenticated.
#[derive(PartialEq, Eq)]
enum Authentication {
    None,
    /// A bearer token.
    Operator,
    /// Key and secret.
    Partner,
    /// Key, secret and signature.
    Signed,
}

/// A request with example values.
pub(super) struct Sample {
    pub(super) method: String,
    /// The whole path, as it is signed.
    pub(super) path: String,
    authentication: Authentication,
    pub(super) is_idempotent: bool,
    /// Media type and body.
    pub(super) body: Option<(String, String)>,
}

/// Renders the request in each language.
pub(super) fn request(document: &Document<'_>, operation: &Operation<'_>) -> Markup {
    let sample = Sample::new(document, operation);
    let has_all_languages = sample.is_of_partner();
    let tab = |(language, code): (&str, String)| Tab {
        language: language.to_owned(),
        caption: Markup::default(),
        code,
    };
    let languages = [
        ("sh", sample.shell()),
        ("python", sample.python()),
        ("js", sample.javascript()),
        ("java", sample.java()),
        ("php", sample.php()),
        ("go", sample.go()),
        ("csharp", sample.csharp()),
    ];
    html! {
        @if has_all_languages {
            (code::tabs("request-language", &languages.map(tab)))
            p.soft {
                "Environment: " a href="/docs/quick-start#set-up" { "quick start" }
                @if sample.authentication == Authentication::Signed { "; signers: " a href="/docs/signing#signers" { "signing" } }
            }
        } @else {
            (code::block("sh", &Markup::default(), &sample.shell()))
        }
    }
}

impl Sample {
    pub(super) fn new(document: &Document<'_>, operation: &Operation<'_>) -> Self {
        let parameters = document.parameters(operation);
        let mut path = format!("{}{}", operation.server, operation.path);
        let mut query = Vec::new();
        for parameter in &parameters {
            let name = text(parameter, "name");
            let schema = document.resolve(&parameter["schema"]);
            let values = items(&schema["examples"]).chain([&schema["example"], &parameter["example"]]);
            let value = values.into_iter().find(|value| !value.is_null());
            let value = value.map_or_else(
                || name.to_uppercase(),
                |value| example_of(document, value, schema).text,
            );
            match text(parameter, "in") {
                "path" => path = path.replace(&format!("{{{name}}}"), &value),
                "query" if parameter["required"] == true => query.push(format!("{name}={value}")),
                _ => {}
            }
        }
        if !query.is_empty() {
            path = format!("{path}?{}", query.join("&"));
        }
        let body = document.resolve(&operation.value["requestBody"]);
        let body = entries(&body["content"])
            .next()
            .and_then(|(media_type, content)| {
                let example = example(document, content)?;
                Some((media_type.to_owned(), example.text))
            });
        Self {
            method: operation.method.to_uppercase(),
            path,
            authentication: authentication(document, operation),
            is_idempotent: parameters
                .iter()
                .any(|parameter| text(parameter, "name") == "Idempotency-Key"),
            body,
        }
    }

    /// Whether the request has the key of a partner.
    pub(super) fn is_of_partner(&self) -> bool {
        matches!(
            self.authentication,
            Authentication::Partner | Authentication::Signed
        )
    }

    pub(super) fn is_signed(&self) -> bool {
        self.authentication == Authentication::Signed
    }

    /// The path below the base URL.
    pub(super) fn relative_path(&self) -> &str {
        self.path.strip_prefix(API_PREFIX).unwrap_or(&self.path)
    }

    fn shell(&self) -> String {
        let mut arguments = Vec::new();
        let url = match self.authentication {
            Authentication::None => format!("https://HOST{}", self.path),
            Authentication::Operator => format!("$VOUCHSAFE_ADMIN_URL{}", self.path),
            Authentication::Partner | Authentication::Signed => {
                format!("$VOUCHSAFE_BASE_URL{}", self.relative_path())
            }
        };
        let method = match (self.method.as_str(), &self.body) {
            ("GET", None) | ("POST", Some(_)) => String::new(),
            ("HEAD", _) => "-I ".to_owned(),
            (method, _) => format!("-X {method} "),
        };
        arguments.push(format!("curl -sS {method}\"{url}\""));
        match self.authentication {
            Authentication::None => {}
            Authentication::Operator => {
                arguments.push("-H \"Authorization: Bearer $VOUCHSAFE_OPERATOR_TOKEN\"".to_owned());
            }
            Authentication::Partner => arguments.push("-H @partner.headers".to_owned()),
            Authentication::Signed => arguments.push("-H @- -H @partner.headers".to_owned()),
        }
        if self.is_idempotent {
            arguments.push("-H \"Idempotency-Key: $(openssl rand -hex 16)\"".to_owned());
        }
        let mut before = String::new();
        let mut file = "/dev/null";
        if let Some((media_type, body)) = &self.body {
            file = "body";
            before = format!("cat > body <<'EOF'\n{}\nEOF\n\n", body.trim_end());
            arguments.push(format!("-H 'Content-Type: {media_type}'"));
            arguments.push("--data-binary @body".to_owned());
        }
        if self.authentication == Authentication::Signed {
            before += &format!("sh sign.sh {} {} < {file} |\n    ", self.method, self.path);
            return before + &arguments.join(" \\\n        ") + "\n";
        }
        before + &arguments.join(" \\\n    ") + "\n"
    }

    /// The headers as lines of name and value, the values as expressions in a language.
    fn headers(&self, expressions: &[(&'static str, &'static str)]) -> Vec<(&'static str, &'static str)> {
        let is_sent = |name: &str| match name {
            "X-Timestamp" | "X-Signature" => self.authentication == Authentication::Signed,
            "Idempotency-Key" => self.is_idempotent,
            "Content-Type" => self.body.is_some(),
            _ => true,
        };
        expressions
            .iter()
            .copied()
            .filter(|(name, _)| is_sent(name))
            .collect()
    }
}

/// The authentication of an operation, from its security schemes.
fn authentication(document: &Document<'_>, operation: &Operation<'_>) -> Authentication {
    let requirement = &document.security(operation)[0];
    let scheme = |name: &str| document.get(&format!("components/securitySchemes/{name}"));
    let schemes: Vec<_> = entries(requirement).map(|(name, _)| scheme(name)).collect();
    let is_header = |name: &str| schemes.iter().any(|scheme| text(scheme, "name") == name);
    if is_header("X-Signature") {
        Authentication::Signed
    } else if is_header("X-API-Key") {
        Authentication::Partner
    } else if schemes.iter().any(|scheme| text(scheme, "scheme") == "bearer") {
        Authentication::Operator
    } else {
        Authentication::None
    }
}
