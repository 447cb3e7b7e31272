// Request signing: the headers that an OpenAPI document cannot generate.
import { createHmac } from "node:crypto";

const { VOUCHSAFE_API_KEY: key = "", VOUCHSAFE_API_SECRET: secret = "" } = process.env;

export function headers(method: string, path: string, body: string): Record<string, string> {
    const timestamp = String(Math.floor(Date.now() / 1000));
    const signature = createHmac("sha256", secret).update(timestamp + method + path + body).digest("hex");
    return {
        "X-API-Key": key,
        "X-API-Secret": secret,
        "X-Timestamp": timestamp,
        "X-Signature": `t=${timestamp},v1=${signature}`,
    };
}
