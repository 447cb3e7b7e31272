// Places orders with k6: each has an Idempotency-Key of its own, and a virtual user signs once a minute.
//
//   VOUCHSAFE_BASE_URL=… VOUCHSAFE_API_KEY=… VOUCHSAFE_API_SECRET=… k6 run --env ORDERS_PER_MINUTE=90 k6.js
import { check } from "k6";
import crypto from "k6/crypto";
import http from "k6/http";

const { VOUCHSAFE_BASE_URL, VOUCHSAFE_API_KEY, VOUCHSAFE_API_SECRET, ORDERS_PER_MINUTE } = __ENV;
const BODY = JSON.stringify({ items: [{ product_id: "sbx-instant", denomination: 25, quantity: 1 }] });

export const options = {
  scenarios: {
    orders: {
      executor: "constant-arrival-rate",
      rate: Number(ORDERS_PER_MINUTE || 90),
      timeUnit: "1m",
      duration: "1m",
      preAllocatedVUs: 20,
    },
  },
  thresholds: { checks: ["rate==1"] },
};

// The value of X-Signature. The path begins with /api/v1 and has no query; the body is the text that is sent.
export function sign(secret, timestamp, method, path, body) {
  return `t=${timestamp},v1=${crypto.hmac("sha256", secret, timestamp + method + path + body, "hex")}`;
}

// A signature is valid for 300 seconds and for every request with this method, path and body.
let signed = { at: 0, headers: {} };

function signedHeaders(method, url, body) {
  const now = Math.floor(Date.now() / 1000);
  if (now - signed.at >= 60) {
    const path = url.replace(/^https?:\/\/[^/]+/, "");
    const signature = sign(VOUCHSAFE_API_SECRET, String(now), method, path, body);
    signed = { at: now, headers: { "X-Timestamp": String(now), "X-Signature": signature } };
  }
  return signed.headers;
}

function randomKey() {
  return Array.from(new Uint8Array(crypto.randomBytes(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

export default function () {
  const url = `${VOUCHSAFE_BASE_URL}/orders`;
  const headers = Object.assign({}, signedHeaders("POST", url, BODY), {
    "X-API-Key": VOUCHSAFE_API_KEY,
    "X-API-Secret": VOUCHSAFE_API_SECRET,
    "Idempotency-Key": randomKey(),
    "Content-Type": "application/json",
  });
  const response = http.post(url, BODY, { headers });
  check(response, { "order is accepted": ({ status }) => status === 201 || status === 202 });
}
