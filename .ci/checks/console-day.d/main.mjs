// A partner from its first contract to its suspension: terms, stock, money, orders, deliveries, a drift, a payout.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { env } from "node:process";
import { Browser, VIEWS } from "../pages.d/browser.mjs";

const TEXT = "return document.querySelector('main').innerText";

// Tables show the last digits of an ID; the document has the whole.
const HTML = "return document.querySelector('main').innerHTML";

// Fills the fields of an open form as typing and choosing would.
const FILL = `const [slug, row, fields] = arguments;
  const forms = [...document.querySelectorAll("form[action]")].filter((form) => form.getAttribute("action").split("?")[0].endsWith("/" + slug));
  const form = row ? forms.find((form) => form.closest("tr").outerHTML.includes(row)) : forms[0];
  if (!form) throw new Error("no form " + slug + " " + (row ?? "") + " in " + document.querySelector("main").innerText);
  form.closest("details").open = true;
  for (const [name, value] of Object.entries(fields)) {
    const input = form.elements[name];
    if (input.type === "file") {
      const files = new DataTransfer();
      files.items.add(new File([value], "file.csv", { type: "text/csv" }));
      input.files = files.files;
    } else if (input.type === "checkbox") input.checked = value;
    else input.value = value;
  }
  window.isBefore = true;
  document.querySelector("h1").dataset.before = "yes";
  form.querySelector("button[type=submit]").dataset.chosen = "yes";`;

// Another document, or another heading in this one.
const IS_SENT = `return document.readyState === "complete" && (!window.isBefore || !document.querySelector("h1[data-before]"))`;

// Drags over the middle of the first chart.
const SELECT_RANGE = `const over = document.querySelector(".chart .u-over");
  const { left, top, width, height } = over.getBoundingClientRect();
  const send = (type, part) => over.dispatchEvent(new MouseEvent(type, { bubbles: true, clientX: left + width * part, clientY: top + height / 2, movementX: 9 }));
  send("mousemove", 0.25);
  send("mousedown", 0.25);
  send("mousemove", 0.75);
  return new Promise(requestAnimationFrame).then(() => send("mouseup", 0.75));`;

const tokens = {};
for (const name of ["ann", "ben"]) tokens[name] = JSON.parse(readFileSync(join(env.SCRATCH, `${name}.json`), "utf8")).token;

const browser = await Browser.start();

async function open(operator, path) {
  const headers = { Authorization: `Bearer ${tokens[operator]}` };
  await browser.devtools("Network.setExtraHTTPHeaders", { headers });
  await browser.open(new URL(path, env.ADMIN_URL).href);
  return browser.run(TEXT);
}

// Sends a form of a page; returns the text of the page that follows.
async function send(operator, path, slug, fields = {}, row = undefined) {
  await open(operator, path);
  await browser.run(FILL, slug, row, fields);
  await browser.click("[data-chosen]");
  await browser.wait(IS_SENT);
  return browser.run(TEXT);
}

// One operator requests a change, the other one confirms it; returns the text of the response.
async function confirmed(operator, path, slug, fields, row) {
  const own = await send(operator, path, slug, fields, row);
  assert.match(own, /needs a second operator/);
  // Its requester can withdraw it, not confirm it.
  assert.match(own, /^Withdraw$/m);
  assert.doesNotMatch(own, /^(Confirm|Decline)$/m);
  const request = await browser.run("return location.pathname");
  const other = operator === "ann" ? "ben" : "ann";
  const list = await open(other, "/requests?status=WAITING");
  assert(list.includes(request.slice(-8)), list);
  if (slug === "top-up") {
    assert.match(await open(other, path), /Waits for a second operator/);
    assert.match(await open(other, request), /Now\s+Balance\s+[\d,.]+\s+Afterwards\s+Balance\s+[\d,.]+/);
  }
  const text = await send(other, request, "confirm");
  assert.match(text, /^The change was carried out/);
  return text;
}

// The values below a label of a page's response.
const valueAfter = (text, label) => new RegExp(`\\b${label}\\s+(\\S+)`).exec(text)[1];

async function eventually(what, attempt) {
  for (const end = Date.now() + 60_000; Date.now() < end; await new Promise((resolve) => setTimeout(resolve, 200))) {
    const result = await attempt();
    if (result) return result;
  }
  throw new Error(`not within a minute: ${what}`);
}

function storeCredential(text) {
  const [api_key, api_secret] = ["API key", "API secret"].map((label) => valueAfter(text, label));
  writeFileSync(join(env.SCRATCH, "credential.json"), JSON.stringify({ api_key, api_secret }), { mode: 0o600 });
}

function partner(method, path, body) {
  const options = ["--json", "--url", env.PARTNER_URL, "--credentials", join(env.SCRATCH, "credential.json")];
  const args = ["call", method, path, ...(body ? [JSON.stringify(body)] : []), ...options];
  return JSON.parse(execFileSync(env.VOUCHSAFE, args, { encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] }));
}

const place = (product_id, quantity, reference = "day") =>
  partner("POST", "/orders", { items: [{ product_id, denomination: 25, quantity }], reference }).order_id;

const statusOf = (order) => partner("GET", `/orders/${order}`).status;

async function addProduct(product_id, changes = {}) {
  const text = await send("ann", "/products", "create", {
    product_id, name: product_id, brand: product_id, category_id: "day-cards", vendor: "mock", currency: "USD", denominations: "25.00",
    "expiry_policy.type": "NONE", route: "stock", ...changes,
  });
  assert.match(text, /The product was created/);
}

async function importVouchers(product_id) {
  const file = `code,expiry\n${[1, 2, 3, 4].map((n) => `${product_id}-${n},2099-12-31\n`).join("")}`;
  const text = await send("ben", `/products/${product_id}`, "import", { denomination: "25", batch: "first", file });
  assert.match(text, /Imported\s+4\b/);
  assert.doesNotMatch(text, new RegExp(`${product_id}-1`));
}

// Starts a job from the list that is open.
async function bulk(action, of, reason) {
  await browser.run(`document.getElementById("bulk-action").value = arguments[0]`, action);
  await browser.click(`#bulk button[value=${of}]`);
  await browser.wait(`return document.readyState === "complete" && location.pathname === "/bulk-jobs/new"`);
  assert.match(await browser.run(TEXT), /(Approve orders|Confirm requests): 2/);
  await browser.run(`document.querySelector("form[action*='/bulk-jobs/new/start'] [name=reason]").value = arguments[0]`, reason);
  await browser.click("form[action*='/bulk-jobs/new/start'] button");
  await browser.wait(`return document.readyState === "complete" && /^.bulk-jobs.blk_/.test(location.pathname)`);
}

const jobEnds = (counts) =>
  eventually("the end of the job", async () => {
    await browser.open(await browser.run("return location.href"));
    const text = await browser.run(TEXT);
    if (text.includes("ENDED")) assert.match(text, counts);
    return text.includes("ENDED");
  });

let isReceiving = false;
const received = [];
const receiver = createServer(async (request, response) => {
  let body = "";
  for await (const part of request) body += part;
  if (isReceiving) received.push(JSON.parse(body).event_id);
  response.writeHead(isReceiving ? 204 : 503).end();
}).listen(Number(env.RECEIVER_PORT), "127.0.0.1");
await once(receiver, "listening");

try {
  await browser.devtools("Network.enable");
  await browser.view(VIEWS.light);

  // Onboarding. The first credential is of the sandbox; its allowlist is too narrow for anybody.
  const created = await send("ann", "/partners", "create", { name: "Day Ltd", allowlist: "203.0.113.7" });
  const partner_id = /ptn_[0-9a-f]{32}/.exec(created)[0];
  const page = `/partners/${partner_id}`;
  await confirmed("ann", page, "allowlist", { allowlist: "127.0.0.0/8" });
  const issued = await confirmed("ann", page, "issue", {});
  assert.match(issued, /It is shown only now/);
  assert.match(await browser.run(TEXT), /Copy[^]*Download as JSON/);
  storeCredential(issued);
  await confirmed("ann", page, "caps", { caps: true, "caps.pending_orders": "40", "caps.spend_per_day": "USD 5000.00\nEUR 4000" });
  assert.match(await open("ben", page), /40/);
  const first = valueAfter(created, "Credential ID");
  assert.match(await send("ann", page, "revoke", {}, first), /The credential was revoked/);
  const found = await open("ben", "/partners?name=day");
  assert(found.includes(partner_id.slice(-8)), found);
  const webhook = partner("POST", "/webhooks", { url: `http://127.0.0.1:${env.RECEIVER_PORT}/events` }).webhook_id;

  // Catalogue and stock.
  const url = `http://127.0.0.1:${env.VENDOR_PORT}`;
  await confirmed("ann", "/vendors", "create", { vendor_id: "day-vendor", adapter: "http", url, credentials: "simulator" });
  assert.match(await send("ann", "/vendors", "create", { vendor_id: "day-hand", adapter: "manual" }), /day-hand/);
  assert.match(await send("ann", "/categories", "create", { category_id: "day-cards", name: "Cards" }), /The category was created/);
  await addProduct("day-gift");
  await addProduct("day-approved", { approval: "always" });
  // The simulator doubles the face value of its vouchers in its records.
  await addProduct("sim-record-altered", { vendor: "day-vendor", route: "vendor" });
  await addProduct("day-by-hand", { vendor: "day-hand", route: "vendor" });
  for (const product of ["day-gift", "day-approved"]) await importVouchers(product);
  assert.match(await open("ben", "/expiries?product_id=day-gift"), /2099-12\s+4\b/);

  // Money: one top-up is confirmed, another one declined.
  await confirmed("ann", page, "top-up", { currency: "USD", amount: "500.00", reference: "day-wire-1" });
  await send("ann", page, "top-up", { currency: "USD", amount: "9999.00", reference: "day-wire-2" });
  const request = await browser.run("return location.pathname");
  assert.match(await send("ben", request, "decline", { reason: "no such wire" }), /The request was declined/);
  assert.match(await open("ben", page), /USD\s+500\.00/);

  // Orders: delivered from stock, approved, rejected, canceled, fulfilled by hand.
  const delivered = place("day-gift", 1, "day-1");
  assert.equal(statusOf(delivered), "DELIVERED");
  const [approved, rejected] = [place("day-approved", 2), place("day-approved", 1)];
  const waiting = await open("ben", "/");
  for (const order of [approved, rejected]) assert(waiting.includes(order.slice(-8)), waiting);
  await confirmed("ann", `/orders/${approved}`, "approve", { reason: "agreed by telephone" });
  assert.equal(statusOf(approved), "DELIVERED");
  assert.match(await send("ben", `/orders/${rejected}`, "reject", { reason: "ordered twice" }), /rejected and refunded/);
  assert.equal(statusOf(rejected), "REFUNDED");
  const canceled = place("day-gift", 1);
  assert.match(await send("ben", `/orders/${canceled}`, "cancel", { reason: "another card is wanted" }), /The order was cancelled/);
  assert.equal(statusOf(canceled), "REFUNDED");
  // Many at once: one operator checks two orders, another one confirms all requests that wait.
  const many = [place("day-approved", 1), place("day-approved", 1)];
  await open("ann", "/orders?pending_reason=APPROVAL");
  for (const order of many) await browser.click(`input[type=checkbox][value=${order}]`);
  await bulk("ORDER_APPROVE", "selected", "agreed by telephone");
  await jobEnds(/Wait for another operator\s+2\b/);
  await open("ben", "/requests?status=WAITING&kind=ORDER_APPROVE");
  await bulk("REQUEST_CONFIRM", "all", "");
  await jobEnds(/Done\s+2\b/);
  for (const order of many) assert.equal(statusOf(order), "DELIVERED");
  const by_hand = place("day-by-hand", 1);
  await confirmed("ann", `/orders/${by_hand}`, "fulfil", { vouchers: "code,pin\nday-by-hand-1,0000" });
  assert.equal(statusOf(by_hand), "DELIVERED");
  assert.doesNotMatch(await open("ben", `/orders/${by_hand}`), /day-by-hand-1/);

  // Deliveries: the endpoint has refused everything so far. It works again, and an operator sends a delivery again.
  const delivery = await eventually("a failed delivery", async () => {
    const text = await open("ben", `/deliveries?order_id=${delivered}`);
    return text.includes("503") && /dlv_[0-9a-f]{32}/.exec(await browser.run(HTML))?.[0];
  });
  isReceiving = true;
  const event_id = /evt_[0-9a-f]{32}/.exec(await open("ben", `/deliveries/${delivery}`))[0];
  assert.match(await send("ben", `/deliveries/${delivery}`, "replay"), /The event is sent again/);
  await eventually("the event", () => received.includes(event_id));
  assert.match(await send("ben", `/webhooks/${webhook}`, "retry"), /attempted now/);
  await eventually("an empty backlog", async () => /Nothing matches/.test(await open("ben", `/deliveries?webhook_id=${webhook}&status=WAITING`)));

  // Reconciliation: the vendor has recorded another amount.
  const bought = place("sim-record-altered", 1);
  await eventually("the bought voucher", () => statusOf(bought) === "DELIVERED");
  const day = /\d{4}-\d{2}-\d{2}/.exec(await open("ann", `/purchases?order_id=${bought}`))[0];
  assert.match(await send("ann", `/reconciliation/${day}`, "run", { vendor: "day-vendor" }), /The comparison was requested/);
  const drift = await eventually("the drift", async () => {
    await open("ben", "/drifts?vendor=day-vendor&resolution=pending");
    return /drf_[0-9a-f]{32}/.exec(await browser.run(HTML))?.[0];
  });
  const resolved = await send("ben", "/drifts?vendor=day-vendor", "resolve", { resolution: "resolved", reason: "the vendor corrects its records" }, drift);
  assert.match(resolved, /The drift has its resolution/);

  // Stock: a voucher that must not be sold.
  const voided = await send("ann", "/products/day-gift", "void", { codes: "code\nday-gift-4", reason: "recalled by the brand" });
  assert.match(voided, /Voided\s+1\b/);

  // Payout.
  const destination = { type: "bank_account", iban: "DE89370400440532013000", name: "Day Ltd" };
  const { payout_id } = partner("POST", "/payouts", { amount: "100.00", currency: "USD", destination });
  assert.match(await open("ann", "/"), /Needs a decision[^]*Payouts to pay 1[^]*Sales by currency[^]*Orders and requests per second/);
  await browser.click(`main a[href="/payouts?status=PENDING"]`);
  await browser.wait(`return document.querySelector("main").innerHTML.includes(arguments[0])`, payout_id);
  const payout = await open("ann", `/payouts/${payout_id}`);
  assert(payout.includes(destination.iban), payout);
  await confirmed("ann", `/payouts/${payout_id}`, "pay", { reference: "bank-4711" });
  assert.equal(partner("GET", `/payouts/${payout_id}`).status, "PAID");
  assert.match(await open("ben", page), /USD\s+225\.00/);

  // The transactions of the day as a file, as a click on the link loads it.
  await open("ann", `${page}/transactions?type=PAYOUT`);
  const file = await browser.run(`return fetch([...document.links].find((link) => link.textContent === "Download CSV")).then((file) => file.text())`);
  assert.match(file, /^created_at,type,amount,currency,[^\r\n]*\r\n[^\r\n]+,PAYOUT,-100\.00,USD,[^\r\n]*\r\n$/);

  // Looking things up.
  for (const id of [delivered, payout_id, delivery, webhook, partner_id, "day-1"]) {
    const text = await open("ben", `/search?q=${id}`);
    assert.doesNotMatch(text, /Nothing matches/, id);
  }
  const trail = await open("ben", `/audit?partner_id=${partner_id}&limit=100`);
  for (const action of ["payout.pay", "order.cancel", "credential.issue"]) assert(trail.includes(action), `${action}: ${trail}`);

  // The end of the contract.
  assert.match(await send("ann", page, "suspend", { codes_blocked: false }), /The partner is suspended/);
  assert.throws(() => partner("GET", "/wallets"), ({ stdout }) => stdout.includes("PARTNER_SUSPENDED"));
  assert.equal(partner("GET", `/orders/${delivered}/vouchers`).data[0].credentials[0].value, "day-gift-1");
  assert.match(await open("ben", page), /This partner is suspended: its requests are refused/);

  // Why an order was slow, and the traffic at that time: a range that is selected in a chart is a link.
  assert.match(await open("ben", `/orders/${delivered}`), /Trace ID of the request\s+[0-9a-f]{32}\s[^]*Wait for the commit/);
  await open("ben", "/");
  await browser.wait(`return document.querySelector(".chart .u-over")`);
  await browser.run(SELECT_RANGE);
  await browser.wait(`return document.readyState === "complete" && location.pathname === "/traffic" && document.querySelector(".chart .plot")`);
  const range = new URLSearchParams(await browser.run("return location.search"));
  assert(new Date(range.get("from")) < new Date(range.get("to")), `${range}`);

  // The overview follows the service, and says when it does not.
  await open("ben", "/");
  await browser.run(`document.querySelector(".facts > div").dataset.before = "yes"`);
  await browser.wait(`return !document.querySelector(".facts [data-before]")`);
  assert.deepEqual(await browser.complaints(), []);
  // A service that hangs reports no error to the browser.
  process.kill(Number(env.SERVICE_PID), "SIGSTOP");
  await browser.wait(`return /Connection lost, last update \\d\\d:\\d\\d:\\d\\d UTC/.test(document.body.innerText)`);
} finally {
  process.kill(Number(env.SERVICE_PID), "SIGCONT");
  await browser.stop();
  receiver.close();
}
