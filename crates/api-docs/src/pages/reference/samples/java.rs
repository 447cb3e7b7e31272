//! Sample requests in Java.

use vouchsafe_security::framing::API_PREFIX;

use super::{Authentication, Sample};

impl Sample {
    pub(super) fn java(&self) -> String {
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
            "var secret = System.getenv(\"VOUCHSAFE_API_SECRET\");\n{timestamp}var method = \"{}\";\nvar path = \"{}\";\n\
             var body = {body};\nvar base = System.getenv(\"VOUCHSAFE_BASE_URL\").replaceFirst(\"{API_PREFIX}$\", \"\");\n\
             var request = HttpRequest.newBuilder(URI.create(base + path))\n{headers}    \
             .method(method, BodyPublishers.ofString(body))\n    .build();\n\
             var response = HttpClient.newHttpClient().send(request, BodyHandlers.ofString());\nSystem.out.println(response.body());\n",
            self.method, self.path,
        );
        let statements: String = statements
            .lines()
            .map(|line| format!("        {line}\n"))
            .collect();
        format!(
            "{imports}\npublic class Example {{\n    public static void main(String[] args) throws Exception {{\n{statements}    }}\n}}\n"
        )
    }
}
