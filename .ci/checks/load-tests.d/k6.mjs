// Runs a k6 script with Node.js: stand-ins for the modules of k6 that it imports. k6 itself is not in the package registries.
//
//   node k6.mjs SCRIPT VECTORS      sign each test vector, then run the script's function three times
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { createHmac, randomBytes } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";

const [script, vectors] = process.argv.slice(2);

const crypto = {
  hmac: (algorithm, secret, data, encoding) => createHmac(algorithm, secret).update(data).digest(encoding),
  randomBytes: (size) => new Uint8Array(randomBytes(size)).buffer,
};

const sent = [];

// The requests of k6 block, so this one does too. The headers, with the secret, go through standard input.
const http = {
  post(url, body, { headers }) {
    const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\n`).join("");
    const options = ["-sS", "-o", "response", "-w", "%{http_code}", "-H", "@-", "--data-binary", body];
    const status = Number(execFileSync("curl", [...options, url], { input: lines, encoding: "utf8" }));
    sent.push({ headers, status });
    return { status, body: readFileSync("response", "utf8") };
  },
};

function check(value, conditions) {
  for (const [name, holds] of Object.entries(conditions)) {
    assert(holds(value), `${name}: ${value.status} ${value.body}`);
  }
  return true;
}

// `import … from "k6/http"` finds these in the working directory.
globalThis.k6 = { check, crypto, http };
mkdirSync("node_modules/k6", { recursive: true });
const exported = { ".": "./index.js", "./crypto": "./crypto.js", "./http": "./http.js" };
writeFileSync("node_modules/k6/package.json", JSON.stringify({ name: "k6", type: "module", exports: exported }));
writeFileSync("node_modules/k6/index.js", "export const { check } = globalThis.k6;");
writeFileSync("node_modules/k6/crypto.js", "export default globalThis.k6.crypto;");
writeFileSync("node_modules/k6/http.js", "export default globalThis.k6.http;");
writeFileSync("package.json", JSON.stringify({ type: "module" }));
writeFileSync("script.js", readFileSync(script));

globalThis.__ENV = process.env;
const { default: iteration, options, sign } = await import(pathToFileURL(resolve("script.js")));

for (const { name, secret, timestamp, method, path, body, signature } of JSON.parse(readFileSync(vectors, "utf8"))) {
  assert.equal(sign(secret, timestamp, method, path, body), signature, name);
}
assert(options.scenarios.orders.rate > 0);

for (let count = 0; count < 3; count += 1) iteration();
const values = (name) => new Set(sent.map(({ headers }) => headers[name])).size;
assert.equal(values("Idempotency-Key"), 3, "each order has its own key");
assert.equal(values("X-Signature"), 1, "the orders share one signature");
console.log(`${sent.length} orders: ${sent.map(({ status }) => status).join(", ")}`);
