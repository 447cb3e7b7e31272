// Signs a Vouchsafe request: prints the headers X-Timestamp and X-Signature.
//
//   VOUCHSAFE_API_SECRET=… node sign.mjs METHOD PATH [TIMESTAMP] < body
import { createHmac } from "node:crypto";
import { readFileSync, realpathSync } from "node:fs";
import { argv, env } from "node:process";
import { fileURLToPath } from "node:url";

// The value of X-Signature. The path begins with /api/v1 and has no query; the body is the bytes that are sent.
export function sign(secret, timestamp, method, path, body) {
  const hmac = createHmac("sha256", secret).update(timestamp + method + path).update(body);
  return `t=${timestamp},v1=${hmac.digest("hex")}`;
}

// As a program, also through a symbolic link; an import runs nothing.
if (argv[1] && realpathSync(argv[1]) === realpathSync(fileURLToPath(import.meta.url))) {
  const [method, path, timestamp = String(Math.floor(Date.now() / 1000))] = argv.slice(2);
  const signature = sign(env.VOUCHSAFE_API_SECRET, timestamp, method, path, readFileSync(0));
  console.log(`X-Timestamp: ${timestamp}\nX-Signature: ${signature}`);
}
