//! Sample requests in Python.

use vouchsafe_security::framing::API_PREFIX;

use super::{Authentication, Sample};

impl Sample {
    pub(super) fn python(&self) -> String {
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
            "{imports}\nsecret = os.environ[\"VOUCHSAFE_API_SECRET\"]\n{timestamp}method, path = \"{}\", \"{}\"\n{body}headers = {{\n\
             {headers}}}\nurl = os.environ[\"VOUCHSAFE_BASE_URL\"].removesuffix(\"{API_PREFIX}\") + path\n\
             request = urllib.request.Request(url, {data}, headers, method=method)\n\
             print(urllib.request.urlopen(request).read().decode())\n",
            self.method, self.path,
        )
    }
}
