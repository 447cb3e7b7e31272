// Places an order with each generated client and reads it back; `fetch` signs.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";

import { client } from "./hey-api/client.gen";
import * as heyApi from "./hey-api/sdk.gen";
import * as orval from "./orval/partner";
import { headers } from "./signing";

const send = globalThis.fetch;
globalThis.fetch = async (input, init) => {
    const request = new Request(input, init);
    const body = await request.clone().text();
    const signed = headers(request.method, new URL(request.url).pathname, body);
    for (const [name, value] of Object.entries(signed)) request.headers.set(name, value);
    return send(request);
};

const order = { items: [{ product_id: "sbx-instant", denomination: 25, quantity: 1 }], reference: "typescript-sdks" };

async function main() {
    const key = { "Idempotency-Key": randomUUID() };
    const placed = await orval.placeOrder(order, { headers: key });
    assert(placed.status === 201, JSON.stringify(placed));
    assert.equal(placed.data.status, "DELIVERED");
    const read = await orval.getOrder(placed.data.order_id);
    assert.deepEqual(read.data, placed.data);

    client.setConfig({ baseUrl: process.env["PARTNER_URL"]! });
    const other = await heyApi.placeOrder({ body: order, headers: { "Idempotency-Key": randomUUID() } });
    assert(other.data, JSON.stringify(other.error));
    assert.equal(other.data.status, "DELIVERED");
    const codes = await heyApi.getVoucherCodes({ path: { order_id: other.data.order_id } });
    assert.equal(codes.data?.data.length, 1);
}

main().catch((error) => {
    console.error(error);
    process.exit(1);
});
