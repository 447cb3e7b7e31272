// Signs a request in the browser and sends it to this host. The key is in the memory of this page only: nothing stores it.
"use strict";

const form = document.getElementById("try");
const fields = form.elements;
const shown = (id) => document.getElementById(id);

// Takes method, path and body of the chosen operation.
function choose() {
  const { value, dataset } = fields.operation.selectedOptions[0];
  fields.path.value = value;
  fields.body.value = dataset.body ?? "";
  fields.body.disabled = dataset.body === undefined;
  fields.idempotency.disabled = !("idempotent" in dataset);
  fields.idempotency.value = fields.idempotency.disabled ? "" : newKey();
}

function newKey() {
  return hex(crypto.getRandomValues(new Uint8Array(16)));
}

function hex(bytes) {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

async function sign(secret, message) {
  const text = new TextEncoder();
  const algorithm = { name: "HMAC", hash: "SHA-256" };
  const key = await crypto.subtle.importKey("raw", text.encode(secret), algorithm, false, ["sign"]);
  return hex(new Uint8Array(await crypto.subtle.sign("HMAC", key, text.encode(message))));
}

async function send() {
  const { method, signed } = fields.operation.selectedOptions[0].dataset;
  const [key, secret, path] = ["key", "secret", "path"].map((name) => fields[name].value.trim());
  if (!key.startsWith("vs_sandbox_")) throw new Error("This page takes only keys of the sandbox, which begin with vs_sandbox_.");
  if (!globalThis.crypto?.subtle) throw new Error("The browser signs only on HTTPS or localhost.");
  const body = fields.body.disabled ? "" : fields.body.value;
  const headers = { "X-API-Key": key, "X-API-Secret": secret };
  let message = "";
  if (signed !== undefined) {
    const timestamp = String(Math.floor(Date.now() / 1000));
    message = timestamp + method + path + body;
    headers["X-Timestamp"] = timestamp;
    headers["X-Signature"] = `t=${timestamp},v1=${await sign(secret, message)}`;
  }
  if (body !== "") headers["Content-Type"] = "application/json";
  if (fields.idempotency.value !== "") headers["Idempotency-Key"] = fields.idempotency.value;
  // A path alone: the key goes to the host that serves this page.
  if (!path.startsWith("/api/v1/")) throw new Error("The path begins with /api/v1/.");
  const options = { method, headers, body: body === "" ? undefined : body, cache: "no-store", credentials: "omit", redirect: "error" };
  const response = await fetch(path, options);
  const text = await response.text();
  shown("outcome").textContent = `${response.status} ${response.statusText}`;
  shown("answer-headers").textContent = [...response.headers].map(([name, value]) => `${name}: ${value}`).join("\n");
  shown("answer-body").textContent = pretty(text);
  shown("signed").textContent = message === "" ? "This request needs no signature." : message;
}

// Indents JSON without reading its numbers, which would cut amounts.
function pretty(text) {
  let depth = 0;
  const line = () => `\n${"  ".repeat(depth)}`;
  return text.replace(/"(?:[^"\\]|\\.)*"|[{}[\],:]/g, (token) => {
    if (token === "{" || token === "[") { depth += 1; return token + line(); }
    if (token === "}" || token === "]") { depth -= 1; return line() + token; }
    if (token === ",") return token + line();
    return token === ":" ? ": " : token;
  });
}

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  for (const id of ["answer-headers", "answer-body", "signed"]) shown(id).textContent = "";
  await send().catch((error) => { shown("outcome").textContent = error.message; });
  shown("answer").hidden = false;
});
fields.operation.addEventListener("change", choose);
choose();
