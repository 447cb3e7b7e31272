// Verifies a delivery with the library of Standard Webhooks, as a partner would. The library lies in the directory named.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const [directory, headers] = process.argv.slice(2);
const { Webhook } = createRequire(`${directory}/`)("standardwebhooks");
const event = new Webhook(process.env.SECRET).verify(readFileSync(0, "utf8"), JSON.parse(headers));
console.log(event.event_id);
