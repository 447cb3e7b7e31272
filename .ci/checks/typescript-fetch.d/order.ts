// Places an order with the generated client and reads it back; a middleware signs.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";

import { Configuration, OrdersApi, OrderStatus, ResponseError } from "./partner";
import { headers } from "./signing";

const configuration = new Configuration({
    basePath: process.env["PARTNER_URL"]!,
    // The document names four headers; the middleware has their values.
    apiKey: "",
    middleware: [
        {
            async pre({ url, init }) {
                const signed = headers(init.method ?? "GET", new URL(url).pathname, (init.body ?? "") as string);
                return { url, init: { ...init, headers: { ...(init.headers as Record<string, string>), ...signed } } };
            },
        },
    ],
});

async function main() {
    const orders = new OrdersApi(configuration);
    const orderRequest = {
        items: [{ productId: "sbx-instant", denomination: 25, quantity: 1 }],
        reference: "typescript-fetch",
    };
    const placed = await orders.placeOrder({ idempotencyKey: randomUUID(), orderRequest });
    assert.equal(placed.status, OrderStatus.Delivered);
    assert.equal(placed.totalAmount, 25);
    const read = await orders.getOrder({ orderId: placed.orderId });
    assert.deepEqual(read, placed);
    const codes = await orders.getVoucherCodes({ orderId: placed.orderId });
    assert.deepEqual(
        codes.data.map((voucher) => voucher.voucherId),
        placed.vouchers.map((voucher) => voucher.voucherId),
    );
    const refused = orders.placeOrder({ idempotencyKey: randomUUID(), orderRequest: { items: [] } });
    await assert.rejects(refused, (error) => error instanceof ResponseError && error.response.status === 422);
}

main().catch((error) => {
    console.error(error);
    process.exit(1);
});
