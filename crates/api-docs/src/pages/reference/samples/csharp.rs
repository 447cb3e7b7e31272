//! Sample requests in C#.

use vouchsafe_security::framing::API_PREFIX;

use super::{Authentication, Sample};

impl Sample {
    pub(super) fn csharp(&self) -> String {
        let headers = self.headers(&[
            (
                "X-API-Key",
                "Environment.GetEnvironmentVariable(\"VOUCHSAFE_API_KEY\")",
            ),
            ("X-API-Secret", "secret"),
            ("X-Timestamp", "timestamp"),
            (
                "X-Signature",
                "Signer.Sign(secret, timestamp, method, path, Encoding.UTF8.GetBytes(body))",
            ),
            ("Idempotency-Key", "Guid.NewGuid().ToString()"),
        ]);
        let headers: String = headers
            .iter()
            .map(|(name, value)| format!("request.Headers.Add(\"{name}\", {value});\n"))
            .collect();
        let is_signed = self.authentication == Authentication::Signed;
        let has_body = self.body.is_some();
        let using = if is_signed || has_body {
            "using System.Text;\n\n"
        } else {
            ""
        };
        let timestamp = if is_signed {
            "string timestamp = DateTimeOffset.UtcNow.ToUnixTimeSeconds().ToString();\n"
        } else {
            ""
        };
        let body = match &self.body {
            Some((_, body)) => format!("string body = \"\"\"\n{body}\n\"\"\";\n"),
            None if is_signed => "string body = \"\";\n".to_owned(),
            None => String::new(),
        };
        let content = if has_body {
            "request.Content = new StringContent(body, Encoding.UTF8, \"application/json\");\n"
        } else {
            ""
        };
        format!(
            "{using}string secret = Environment.GetEnvironmentVariable(\"VOUCHSAFE_API_SECRET\")!;\n{timestamp}string method = \"{}\";\n\
             string path = \"{}\";\n{body}string url = Environment.GetEnvironmentVariable(\"VOUCHSAFE_BASE_URL\")!;\n\
             string root = url.EndsWith(\"{API_PREFIX}\") ? url[..^{}] : url;\n\
             using var request = new HttpRequestMessage(new HttpMethod(method), root + path);\n{headers}{content}\
             using var client = new HttpClient();\nusing var response = await client.SendAsync(request);\n\
             Console.WriteLine(await response.Content.ReadAsStringAsync());\n",
            self.method,
            self.path,
            API_PREFIX.len(),
        )
    }
}
