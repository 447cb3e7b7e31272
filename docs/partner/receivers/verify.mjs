// Verifies a Vouchsafe webhook delivery: exits with 0 if it is authentic and recent. Node.js 18 or later, nothing else.
//
//   VOUCHSAFE_WEBHOOK_SECRET=whsec_… node verify.mjs WEBHOOK_ID WEBHOOK_TIMESTAMP WEBHOOK_SIGNATURE [NOW] < body
import { createHmac, timingSafeEqual } from "node:crypto";
import { readFileSync, realpathSync } from "node:fs";
import { argv, env } from "node:process";
import { fileURLToPath } from "node:url";

/** Returns whether one of the signatures is valid. The body is the raw bytes. */
export function verify(secret, id, timestamp, signatures, body, now) {
  const key = Buffer.from(secret.replace(/^whsec_/, ""), "base64");
  const mac = createHmac("sha256", key).update(`${id}.${timestamp}.`).update(body).digest("base64");
  const expected = Buffer.from(`v1,${mac}`);
  const same = (one) => one.length === expected.length && timingSafeEqual(one, expected);
  const given = signatures.split(" ").map((one) => Buffer.from(one));
  return Math.abs(now - Number(timestamp)) <= 300 && given.some(same);
}

// As a program, also through a symbolic link; an import runs nothing.
if (argv[1] && realpathSync(argv[1]) === realpathSync(fileURLToPath(import.meta.url))) {
  const [id, timestamp, signatures, now = Date.now() / 1000] = argv.slice(2);
  if (!verify(env.VOUCHSAFE_WEBHOOK_SECRET, id, timestamp, signatures, readFileSync(0), Number(now))) {
    console.error("the signature is wrong or the timestamp is not within 300 seconds of now");
    process.exit(1);
  }
}
