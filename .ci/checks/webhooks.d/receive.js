// A receiver with the npm package standardwebhooks: prints event and order of each delivery that it accepts, refuses others.
//
//   WEBHOOK_SECRET=whsec_… node receive.js PORT
const { createServer } = require("node:http");
const { Webhook } = require("standardwebhooks");

const webhook = new Webhook(process.env.WEBHOOK_SECRET);

createServer(async (request, response) => {
    let body = "";
    for await (const chunk of request) body += chunk;
    try {
        const { event, data } = webhook.verify(body, request.headers);
        console.log(`${event} ${data.order_id}`);
        response.statusCode = 204;
    } catch (error) {
        console.error(error.message);
        response.statusCode = 400;
    }
    response.end();
}).listen(Number(process.argv[2]), "127.0.0.1");
