// Objects that the pages show: a partner, an order of each kind, a payout, an endpoint that fails, operators.
import { execFileSync } from "node:child_process";
import { env } from "node:process";

export async function call(method, path, body, type = "application/json") {
  const response = await fetch(`${env.ADMIN_URL}/admin/v1${path}`, {
    method,
    headers: { Authorization: `Bearer ${env.OPERATOR_TOKEN}`, "Content-Type": type },
    body: typeof body === "string" ? body : JSON.stringify(body),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
  return text ? JSON.parse(text) : undefined;
}

function callAsPartner(path, body) {
  const args = ["call", "POST", path, JSON.stringify(body)];
  const settings = { ...env, VOUCHSAFE_DATA_DIR: env.DATA_DIR, VOUCHSAFE_URL: env.PARTNER_URL };
  return JSON.parse(execFileSync(env.VOUCHSAFE, args, { encoding: "utf8", env: settings }));
}

// Returns the order that waits for approval, and a token per role.
export async function prepare() {
  await call("PUT", "/vendors/by-hand", { adapter: "manual" });
  const product = {
    name: "Console card", brand: "console", category_id: "retail", vendor: "by-hand", currency: "USD", countries: ["US"],
    denominations: ["25"], expiry_policy: { type: "NONE" }, redemption: { instructions: "Type it in.", terms: "" },
    route: "vendor", approval: "always",
  };
  await call("PUT", "/products/console-approved", product);
  await call("PUT", "/products/console-manual", { ...product, brand: "console-2", approval: "rule" });
  await call("POST", "/stock?product_id=console-approved&denomination=25", "code,pin\nCONSOLE-1,1\nCONSOLE-2,2\n", "text/csv");
  const order = (product_id, reference) =>
    callAsPartner("/orders", { items: [{ product_id, denomination: "25", quantity: 1 }], reference });
  const { order_id } = order("console-approved", "\u202ecba <script>alert(1)</script>");
  order("console-approved", "second");
  order("console-manual", "third");
  callAsPartner("/payouts", {
    amount: "5.00", currency: "USD", destination: { type: "bank_account", iban: "DE02120300000000202051", name: "Example" },
  });
  callAsPartner("/webhooks", { url: "http://127.0.0.1:9/unreachable", events: ["order.delivered"] });
  const tokens = { admin: env.OPERATOR_TOKEN };
  for (const role of ["operator", "viewer"]) {
    const name = `console-${role}`;
    await call("POST", "/operators", { name, role });
    tokens[role] = (await call("POST", `/operators/${name}/tokens`, {})).token;
  }
  return { order: order_id, tokens };
}
