// Objects that the pages show: orders, a payout, an endpoint that fails, a change that waits, operators.
import { execFileSync } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { env } from "node:process";

async function send(token, method, path, body, type) {
  const response = await fetch(`${env.ADMIN_URL}${path}`, {
    method,
    headers: { Authorization: `Bearer ${token}`, "Content-Type": type },
    body: typeof body === "string" ? body : JSON.stringify(body),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
  return text ? JSON.parse(text) : {};
}

const JSON_TYPE = "application/json";

const request = (method, path, body, type = JSON_TYPE) => send(env.OPERATOR_TOKEN, method, `/admin/v1${path}`, body, type);

const confirm = ({ request_id }) => send(env.SECOND_TOKEN, "POST", `/admin/v1/requests/${request_id}/confirm`, undefined, JSON_TYPE);

// A token that a second operator confirmed is inactive until its holder redeems the code.
const activate = (token, activation_code) => send(token, "POST", "/activation", { activation_code }, JSON_TYPE);

// Carries a change out, with the second operator if it needs one.
async function change(...args) {
  const result = await request(...args);
  return result.request_id ? confirm(result) : result;
}

function callAsPartner(path, body) {
  const settings = { ...env, VOUCHSAFE_DATA_DIR: env.DATA_DIR, VOUCHSAFE_URL: env.PARTNER_URL };
  const options = { encoding: "utf8", env: settings, stdio: ["ignore", "pipe", "ignore"] };
  return JSON.parse(execFileSync(env.VOUCHSAFE, ["call", "POST", path, JSON.stringify(body)], options));
}

async function failedDelivery() {
  for (const end = Date.now() + 30_000; Date.now() < end; await new Promise((resolve) => setTimeout(resolve, 100))) {
    if ((await request("GET", "/deliveries")).data.length) return;
  }
  throw new Error("no delivery failed in 30 s");
}

// Returns the order that waits for approval, a token per role, and a product with stock.
export async function prepare() {
  await change("PUT", "/vendors/by-hand", { adapter: "manual" });
  const product = {
    name: "Console card", brand: "console", category_id: "retail", vendor: "by-hand", currency: "USD", countries: ["US"],
    denominations: ["25"], expiry_policy: { type: "NONE" }, redemption: { instructions: "Type it in.", terms: "" },
    route: "vendor", approval: "always",
  };
  await change("PUT", "/products/console-approved", product);
  await change("PUT", "/products/console-manual", { ...product, brand: "console-2", approval: "rule" });
  await change("POST", "/stock?product_id=console-approved&denomination=25", "code,pin\nCONSOLE-1,1\nCONSOLE-2,2\n", "text/csv");
  callAsPartner("/webhooks", { url: "http://127.0.0.1:9/unreachable", events: ["order.delivered"] });
  const order = (product_id, reference) =>
    callAsPartner("/orders", { items: [{ product_id, denomination: "25", quantity: 1 }], reference });
  const { order_id } = order("console-approved", "<script>alert(1)</script>");
  const second = order("console-approved", "second");
  order("console-manual", "third");
  await change("POST", `/orders/${second.order_id}/approve`, { reason: "agreed" });
  await failedDelivery();
  const { data: deliveries } = await request("GET", "/deliveries");
  await request("POST", "/bulk-jobs", { action: "DELIVERY_REPLAY", ids: deliveries.map((delivery) => delivery.delivery_id) });
  callAsPartner("/payouts", {
    amount: "5.00", currency: "USD", destination: { type: "bank_account", iban: "DE02120300000000202051", name: "Example" },
  });
  const { partner_id } = await request("GET", `/orders/${order_id}`);
  await request("POST", `/partners/${partner_id}/wallets/USD/top-ups`, { amount: "5000.00", reference: "wire-1" });
  const tokens = { admin: env.OPERATOR_TOKEN };
  for (const role of ["operator", "viewer"]) {
    const name = `console-${role}`;
    await change("POST", "/operators", { name, role });
    tokens[role] = `vso_${randomBytes(32).toString("hex")}`;
    const token_sha256 = createHash("sha256").update(tokens[role]).digest("hex");
    const { activation_code } = await change("POST", `/operators/${name}/tokens`, { token_sha256 });
    await activate(tokens[role], activation_code);
  }
  return { order: order_id, tokens, product: "console-approved" };
}
