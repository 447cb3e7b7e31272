//! Sample requests of an endpoint: `curl`, and the languages of the signers in `docs/partner/signers`.

use maud::{Markup, html};

use vouchsafe_security::framing::API_PREFIX;

use super::body::{example, plain_or_json};
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
struct Sample {
    method: String,
    /// The whole path, as it is signed.
    path: String,
    authentication: Authentication,
    is_idempotent: bool,
    /// Media type and body.
    body: Option<(String, String)>,
}

/// Renders the request in each language.
pub(super) fn request(document: &Document<'_>, operation: &Operation<'_>) -> Markup {
    let sample = Sample::new(document, operation);
    let has_all_languages = matches!(
        sample.authentication,
        Authentication::Partner | Authentication::Signed
    );
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
    fn new(document: &Document<'_>, operation: &Operation<'_>) -> Self {
        let parameters = document.parameters(operation);
        let mut path = format!("{}{}", operation.server, operation.path);
        let mut query = Vec::new();
        for parameter in &parameters {
            let name = text(parameter, "name");
            let schema = document.resolve(&parameter["schema"]);
            let values = items(&schema["examples"]).chain([&schema["example"], &parameter["example"]]);
            let value = values.into_iter().find(|value| !value.is_null());
            let value = value.map_or_else(|| name.to_uppercase(), plain_or_json);
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
                Some((media_type.to_owned(), plain_or_json(example)))
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

    /// The path below the base URL.
    fn relative_path(&self) -> &str {
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

    fn python(&self) -> String {
        let headers = self.headers(&[
            ("X-API-Key", "os.environ[\"VOUCHSAFE_API_KEY\"]"),
            ("X-API-Secret", "secret"),
            ("X-Timestamp", "timestamp"),
            ("X-Signature", "sign(secret, timestamp, method, path, body)"),
            ("Idempotency-Key", "str(uuid.uuid4())"),
            ("Content-Type", "\"application/json\""),
        ]);
        let headers: String = headers
            .iter()
            .map(|(name, value)| format!("    \"{name}\": {value},\n"))
            .collect();
        let is_signed = self.authentication == Authentication::Signed;
        let imports = [
            ("import os\n", true),
            ("import time\n", is_signed),
            ("import urllib.request\n", true),
            ("import uuid\n", self.is_idempotent),
            ("\nfrom sign import sign\n", is_signed),
        ];
        let imports: String = imports
            .iter()
            .filter(|(_, is_used)| *is_used)
            .map(|(line, _)| *line)
            .collect();
        let body = self
            .body
            .as_ref()
            .map_or_else(|| "b\"\"".to_owned(), |(_, body)| format!("b\"\"\"{body}\"\"\""));
        let timestamp = if is_signed {
            "timestamp = str(int(time.time()))\n"
        } else {
            ""
        };
        let data = if self.body.is_some() { "body" } else { "None" };
        let body = if is_signed {
            format!("body = {body}\n")
        } else {
            String::new()
        };
        format!(
            "{imports}\nsecret = os.environ[\"VOUCHSAFE_API_SECRET\"]\n{timestamp}method, path = \"{}\", \
             \"{}\"\n{body}headers = {{\n{headers}}}\nurl = \
             os.environ[\"VOUCHSAFE_BASE_URL\"].removesuffix(\"{API_PREFIX}\") + path\nrequest = \
             urllib.request.Request(url, {data}, headers, \
             method=method)\nprint(urllib.request.urlopen(request).read().decode())\n",
            self.method, self.path,
        )
    }

    fn javascript(&self) -> String {
        let headers = self.headers(&[
            ("X-API-Key", "env.VOUCHSAFE_API_KEY"),
            ("X-API-Secret", "secret"),
            ("X-Timestamp", "timestamp"),
            ("X-Signature", "sign(secret, timestamp, method, path, body)"),
            ("Idempotency-Key", "crypto.randomUUID()"),
            ("Content-Type", "\"application/json\""),
        ]);
        let headers: String = headers
            .iter()
            .map(|(name, value)| format!("  \"{name}\": {value},\n"))
            .collect();
        let is_signed = self.authentication == Authentication::Signed;
        let import = if is_signed {
            "import { sign } from \"./sign.mjs\";\n"
        } else {
            ""
        };
        let timestamp = if is_signed {
            "const timestamp = String(Math.floor(Date.now() / 1000));\n"
        } else {
            ""
        };
        let body = match &self.body {
            Some((_, body)) => format!("const body = JSON.stringify({body});\n"),
            None if is_signed => "const body = \"\";\n".to_owned(),
            None => String::new(),
        };
        let sent = if self.body.is_some() { ", body" } else { "" };
        format!(
            "import {{ env }} from \"node:process\";\n{import}\nconst secret = \
             env.VOUCHSAFE_API_SECRET;\n{timestamp}const [method, path] = [\"{}\", \"{}\"];\n{body}const \
             headers = {{\n{headers}}};\nconst url = env.VOUCHSAFE_BASE_URL.replace(/\\{API_PREFIX}$/, \
             \"\") + path;\nconst response = await fetch(url, {{ method, headers{sent} \
             }});\nconsole.log(response.status, await response.text());\n",
            self.method, self.path,
        )
        .replace(
            &format!("/\\{API_PREFIX}$/"),
            &format!("/{}$/", API_PREFIX.replace('/', "\\/")),
        )
    }

    fn java(&self) -> String {
        let headers = self.headers(&[
            ("X-API-Key", "System.getenv(\"VOUCHSAFE_API_KEY\")"),
            ("X-API-Secret", "secret"),
            ("X-Timestamp", "timestamp"),
            (
                "X-Signature",
                "Sign.sign(secret, timestamp, method, path, body.getBytes(UTF_8))",
            ),
            ("Idempotency-Key", "UUID.randomUUID().toString()"),
            ("Content-Type", "\"application/json\""),
        ]);
        let headers: String = headers
            .iter()
            .map(|(name, value)| format!("    .header(\"{name}\", {value})\n"))
            .collect();
        let is_signed = self.authentication == Authentication::Signed;
        let imports = [
            ("import java.net.URI;\n", true),
            ("import java.net.http.HttpClient;\n", true),
            ("import java.net.http.HttpRequest;\n", true),
            ("import java.net.http.HttpRequest.BodyPublishers;\n", true),
            ("import java.net.http.HttpResponse.BodyHandlers;\n", true),
            ("import java.util.UUID;\n", self.is_idempotent),
            (
                "\nimport static java.nio.charset.StandardCharsets.UTF_8;\n",
                is_signed,
            ),
        ];
        let imports: String = imports
            .iter()
            .filter(|(_, is_used)| *is_used)
            .map(|(line, _)| *line)
            .collect();
        let timestamp = if is_signed {
            "var timestamp = String.valueOf(System.currentTimeMillis() / 1000);\n"
        } else {
            ""
        };
        let body = match &self.body {
            Some((_, body)) => format!("\"\"\"\n    {}\"\"\"", body.replace('\n', "\n    ")),
            None => "\"\"".to_owned(),
        };
        let statements = format!(
            "var secret = System.getenv(\"VOUCHSAFE_API_SECRET\");\n{timestamp}var method = \"{}\";\nvar \
             path = \"{}\";\nvar body = {body};\nvar base = \
             System.getenv(\"VOUCHSAFE_BASE_URL\").replaceFirst(\"{API_PREFIX}$\", \"\");\nvar request = \
             HttpRequest.newBuilder(URI.create(base + path))\n{headers}    .method(method, \
             BodyPublishers.ofString(body))\n    .build();\nvar response = \
             HttpClient.newHttpClient().send(request, \
             BodyHandlers.ofString());\nSystem.out.println(response.body());\n",
            self.method, self.path,
        );
        let statements: String = statements
            .lines()
            .map(|line| format!("        {line}\n"))
            .collect();
        format!(
            "{imports}\npublic class Example {{\n    public static void main(String[] args) throws \
             Exception {{\n{statements}    }}\n}}\n"
        )
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
