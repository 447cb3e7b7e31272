// Runs the Postman collection outside Postman, with a stub for the part of `pm` that its scripts use.
//
//   node postman.mjs COLLECTION sign VECTORS      sign each test vector with the pre-request script
//   API_KEY=… API_SECRET=… node postman.mjs COLLECTION send BASE_URL      send every request and print the responses
import assert from "node:assert/strict";
import { createHmac, randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";

const [file, task, argument] = process.argv.slice(2);
const collection = JSON.parse(readFileSync(file, "utf8"));

// Stands in for crypto-js: the result of HmacSHA256(text, text) prints as hex.
const cryptoJs = {
  HmacSHA256: (message, key) => ({ toString: () => createHmac("sha256", key).update(message).digest("hex") }),
};

function load(name) {
  assert.equal(name, "crypto-js", "the scripts require no other module");
  return cryptoJs;
}

function run(events, listen, pm, clock) {
  for (const event of (events ?? []).filter((event) => event.listen === listen)) {
    new Function("pm", "require", "Date", event.script.exec.join("\n"))(pm, load, clock);
  }
}

// An unset variable stays as written.
function replaced(text, variables) {
  return text.replace(/\{\{([^{}]+)\}\}/g, (whole, name) =>
    name === "$guid" ? randomUUID() : (variables.get(name) ?? whole));
}

function stub(variables, { method, url, body, header = [] }) {
  const headers = new Map(header.map(({ key, value }) => [key, value]));
  return {
    headers,
    variables: { replaceIn: (text) => replaced(text, variables) },
    collectionVariables: { set: (name, value) => variables.set(name, value) },
    request: {
      method,
      url: { toString: () => url },
      body: body && { ...body },
      headers: { upsert: ({ key, value }) => headers.set(key, value) },
    },
  };
}

function variablesWith(entries) {
  return new Map([...collection.variable.map(({ key, value }) => [key, value]), ...entries]);
}

function sign(vectors) {
  for (const { name, secret, timestamp, method, path, body, signature } of vectors) {
    const variables = variablesWith([["base_url", "https://vouchsafe.test"], ["api_secret", secret]]);
    const raw = body === "" ? undefined : { mode: "raw", raw: body };
    const pm = stub(variables, { method, url: `{{base_url}}${path}?not=signed`, body: raw });
    run(collection.event, "prerequest", pm, { now: () => Number(timestamp) * 1000 + 999 });
    assert.equal(pm.headers.get("X-Signature"), signature, name);
    assert.equal(pm.headers.get("X-Timestamp"), timestamp, name);
    assert.equal(pm.headers.has("Idempotency-Key"), method === "POST" && /\/(orders|payouts)$/.test(path), name);
  }
  console.log(`${vectors.length} signed`);
}

function keyOf(variables) {
  const pm = stub(variables, { method: "POST", url: "https://vouchsafe.test/api/v1/orders" });
  run(collection.event, "prerequest", pm, Date);
  return pm.headers.get("Idempotency-Key");
}

function keys() {
  assert.notEqual(keyOf(variablesWith([])), keyOf(variablesWith([])), "each order gets its own key");
  assert.equal(keyOf(variablesWith([["idempotency_key", "mine"]])), "mine");
}

async function send(baseUrl) {
  const { API_KEY: key, API_SECRET: secret } = process.env;
  const variables = variablesWith([["base_url", baseUrl], ["api_key", key], ["api_secret", secret]]);
  const sent = [];
  for (const { request, event } of collection.item.flatMap((folder) => folder.item)) {
    const pm = stub(variables, request);
    run(collection.event, "prerequest", pm, Date);
    const url = replaced(request.url, variables);
    const body = pm.request.body?.raw;
    const response = await fetch(url, { method: request.method, headers: Object.fromEntries(pm.headers), body });
    const text = await response.text();
    run(event, "test", { ...pm, response: { code: response.status, json: () => JSON.parse(text) } }, Date);
    sent.push({ method: request.method, path: request.url, status: response.status, body: text });
  }
  console.log(JSON.stringify(sent));
}

if (task === "sign") {
  keys();
  sign(JSON.parse(readFileSync(argument, "utf8")));
} else {
  await send(argument);
}
