//! Sample requests in JavaScript.

use vouchsafe_security::framing::API_PREFIX;

use super::{Authentication, Sample};

impl Sample {
    pub(super) fn javascript(&self) -> String {
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
            "import {{ env }} from \"node:process\";\n{import}\nconst secret = env.VOUCHSAFE_API_SECRET;\n{timestamp}\
             const [method, path] = [\"{}\", \"{}\"];\n{body}const headers = {{\n{headers}}};\n\
             const url = env.VOUCHSAFE_BASE_URL.replace(/\\{API_PREFIX}$/, \"\") + path;\n\
             const response = await fetch(url, {{ method, headers{sent} }});\nconsole.log(response.status, await response.text());\n",
            self.method, self.path,
        )
        .replace(&format!("/\\{API_PREFIX}$/"), &format!("/{}$/", API_PREFIX.replace('/', "\\/")))
    }
}
