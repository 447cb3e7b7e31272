//! Sample requests in PHP.

use vouchsafe_security::framing::API_PREFIX;

use super::{Authentication, Sample};

impl Sample {
    pub(super) fn php(&self) -> String {
        let headers = self.headers(&[
            ("X-API-Key", "getenv('VOUCHSAFE_API_KEY')"),
            ("X-API-Secret", "$secret"),
            ("X-Timestamp", "$timestamp"),
            ("X-Signature", "sign($secret, $timestamp, $method, $path, $body)"),
            ("Idempotency-Key", "bin2hex(random_bytes(16))"),
            ("Content-Type", "'application/json'"),
        ]);
        let headers: String = headers
            .iter()
            .map(|(name, value)| format!("        '{name}: ' . {value},\n"))
            .collect();
        let is_signed = self.authentication == Authentication::Signed;
        let require = if is_signed { "require 'sign.php';\n\n" } else { "" };
        let timestamp = if is_signed {
            "$timestamp = (string) time();\n"
        } else {
            ""
        };
        let body = match &self.body {
            Some((_, body)) => format!("$body = <<<'JSON'\n{body}\nJSON;\n"),
            None if is_signed => "$body = '';\n".to_owned(),
            None => String::new(),
        };
        let data = if self.body.is_some() {
            "    CURLOPT_POSTFIELDS => $body,\n"
        } else {
            ""
        };
        let head = if self.method == "HEAD" {
            "    CURLOPT_NOBODY => true,\n"
        } else {
            ""
        };
        format!(
            "<?php\n{require}$secret = getenv('VOUCHSAFE_API_SECRET');\n{timestamp}$method = '{}';\n$path = '{}';\n{body}\
             $base = preg_replace('#{API_PREFIX}$#', '', getenv('VOUCHSAFE_BASE_URL'));\n$request = curl_init($base . $path);\n\
             curl_setopt_array($request, [\n    CURLOPT_CUSTOMREQUEST => $method,\n{data}{head}    CURLOPT_HTTPHEADER => [\n{headers}    ],\n\
             \x20   CURLOPT_RETURNTRANSFER => true,\n]);\necho curl_exec($request), \"\\n\";\n",
            self.method, self.path,
        )
    }
}
