// Verifies a delivery with the Standard Webhooks library, as a partner would. The first argument is the library's directory.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const [directory, headers] = process.argv.slice(2);
const { Webhook } = createRequire(`${directory}/`)("standardwebhooks");
const event = new Webhook(process.env.SECRET).verify(readFileSync(0, "utf8"), JSON.parse(headers));
console.log(event.event_id);
