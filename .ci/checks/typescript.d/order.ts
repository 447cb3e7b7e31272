// Places an order with the generated types and reads it back. The compiler checks that statuses and errors have types.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";

import type { components, operations } from "./partner.js";
import type { components as operator } from "./operator.js";
import { headers } from "./signing.js";

type Place = operations["placeOrder"];
type Order = components["schemas"]["Order"];
type Responses<Operation extends keyof operations> = operations[Operation]["responses"];
type Body<Response> = Response extends { content: { "application/json": infer Json } } ? Json : never;

// A status is one of its values, so a comparison with another text does not compile.
const delivered: Order["status"] = "DELIVERED";
// @ts-expect-error
const unknown: Order["status"] = "SHIPPED";
const paid: operator["schemas"]["Payout"]["status"] = "PAID";
assert.ok(delivered && unknown && paid);

// The kind of an event determines its data. An event of a kind that this client does not know is an event all the same.
function refunded(event: components["schemas"]["Event"]): number | undefined {
    if (event.event !== "order.refunded") return undefined;
    return (event.data as components["schemas"]["OrderRefundedEvent"]["data"]).refund.amount;
}
assert.equal(typeof refunded, "function");

async function send<Json>(method: string, path: string, body: string, more: Record<string, string> = {}) {
    const url = new URL(path, process.env["PARTNER_URL"]);
    const init = body === "" ? {} : { body };
    const signed = headers(method, path, body);
    const response = await fetch(url, { method, headers: { ...signed, ...more }, ...init });
    return { status: response.status, json: (await response.json()) as Json };
}

const request: Place["requestBody"]["content"]["application/json"] = {
    items: [{ product_id: "sbx-instant", denomination: 25, quantity: 1 }],
    reference: "typescript",
};
const key: Place["parameters"]["header"] = { "Idempotency-Key": randomUUID() };
const placed = await send<Body<Responses<"placeOrder">[201]>>("POST", "/api/v1/orders", JSON.stringify(request), {
    "Content-Type": "application/json",
    "Idempotency-Key": key["Idempotency-Key"],
});
assert.equal(placed.status, 201, JSON.stringify(placed.json));
assert.equal(placed.json.status, delivered);

const path = `/api/v1/orders/${placed.json.order_id}`;
const read = await send<Body<Responses<"getOrder">[200]>>("GET", path, "");
assert.deepEqual(read.json, placed.json);

const refused = await send<Body<Responses<"placeOrder">[422]>>("POST", "/api/v1/orders", "{}", {
    "Content-Type": "application/json",
    "Idempotency-Key": randomUUID(),
});
assert.deepEqual([refused.status, refused.json.error.code], [422, "VALIDATION_FAILED"]);
