//! Sample requests in Go.

use vouchsafe_security::framing::API_PREFIX;

use super::{Authentication, Sample};

impl Sample {
    pub(super) fn go(&self) -> String {
        let headers = self.headers(&[
            ("X-API-Key", "os.Getenv(\"VOUCHSAFE_API_KEY\")"),
            ("X-API-Secret", "secret"),
            ("X-Timestamp", "timestamp"),
            (
                "X-Signature",
                "sign(secret, timestamp, method, path, []byte(body))",
            ),
            ("Idempotency-Key", "hex.EncodeToString(key)"),
            ("Content-Type", "\"application/json\""),
        ]);
        let headers: String = headers
            .iter()
            .map(|(name, value)| format!("\trequest.Header.Set(\"{name}\", {value})\n"))
            .collect();
        let is_signed = self.authentication == Authentication::Signed;
        let imports = [
            ("crypto/rand", self.is_idempotent),
            ("encoding/hex", self.is_idempotent),
            ("fmt", true),
            ("io", true),
            ("net/http", true),
            ("os", true),
            ("strconv", is_signed),
            ("strings", true),
            ("time", is_signed),
        ];
        let imports: String = imports
            .iter()
            .filter(|(_, is_used)| *is_used)
            .map(|(name, _)| format!("\t\"{name}\"\n"))
            .collect();
        let timestamp = if is_signed {
            "\ttimestamp := strconv.FormatInt(time.Now().Unix(), 10)\n"
        } else {
            ""
        };
        let key = if self.is_idempotent {
            "\tkey := make([]byte, 16)\n\tif _, err := rand.Read(key); err != nil {\n\t\tpanic(err)\n\t}\n"
        } else {
            ""
        };
        let body = self
            .body
            .as_ref()
            .map_or_else(|| "\"\"".to_owned(), |(_, body)| format!("`{body}`"));
        // The signer is a program, too: its function is copied.
        let copied = if is_signed {
            "\n// func sign: from sign.go\n"
        } else {
            ""
        };
        format!(
            "package main\n\nimport (\n{imports})\n{copied}\nfunc main() {{\n\tsecret := os.Getenv(\"VOUCHSAFE_API_SECRET\")\n{timestamp}{key}\
             \tmethod, path := \"{}\", \"{}\"\n\tbody := {body}\n\tbase := strings.TrimSuffix(os.Getenv(\"VOUCHSAFE_BASE_URL\"), \"{API_PREFIX}\")\n\
             \trequest, err := http.NewRequest(method, base+path, strings.NewReader(body))\n\tif err != nil {{\n\t\tpanic(err)\n\t}}\n{headers}\
             \tresponse, err := http.DefaultClient.Do(request)\n\tif err != nil {{\n\t\tpanic(err)\n\t}}\n\tdefer response.Body.Close()\n\
             \ttext, err := io.ReadAll(response.Body)\n\tfmt.Println(response.StatusCode, string(text), err)\n}}\n",
            self.method, self.path,
        )
    }
}
