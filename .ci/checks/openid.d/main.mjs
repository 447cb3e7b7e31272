// An OpenID provider (npm oidc-provider) with one client and two people, and a person who signs in with a browser of cookies.
import assert from "node:assert/strict";
import { once } from "node:events";
import Provider from "oidc-provider";

const [port] = process.argv.slice(2);
const { ADMIN_URL } = process.env;
const issuer = `http://127.0.0.1:${port}`;
const people = { lead: ["staff", "leads"], guest: ["guests"] };

const provider = new Provider(issuer, {
    clients: [{
        client_id: "vouchsafe",
        client_secret: "a-secret-of-the-client",
        redirect_uris: [`${ADMIN_URL}/sign-in/callback`],
    }],
    claims: { email: ["email", "email_verified"], groups: ["groups"] },
    scopes: ["openid", "email", "groups"],
    // Claims of scopes in the ID token itself.
    conformIdTokenClaims: false,
    pkce: { required: () => true },
    cookies: { keys: ["a key of this check"] },
    findAccount: (_, id) => people[id] && {
        accountId: id,
        claims: () => ({ sub: id, email: `${id}@example.com`, email_verified: true, groups: people[id] }),
    },
});
const server = provider.listen(Number(port), "127.0.0.1");
await once(server, "listening");

// A browser: cookies per origin, redirects followed one by one.
class Browser {
    cookies = new Map();

    async request(url, form) {
        const { origin } = new URL(url);
        const jar = this.cookies.get(origin) ?? new Map();
        this.cookies.set(origin, jar);
        const response = await fetch(url, {
            method: form ? "POST" : "GET",
            redirect: "manual",
            headers: {
                accept: "text/html",
                cookie: [...jar].map(([name, value]) => `${name}=${value}`).join("; "),
            },
            body: form && new URLSearchParams(form),
        });
        for (const cookie of response.headers.getSetCookie()) {
            const [pair] = cookie.split(";");
            const [name] = pair.split("=", 1);
            jar.set(name, pair.slice(name.length + 1));
        }
        const location = response.headers.get("location");
        return { status: response.status, text: await response.text(), location: location && new URL(location, url).href };
    }

    // Follows redirects until a page is shown.
    async open(url, form) {
        const visited = [url];
        let response = await this.request(url, form);
        while (response.location) {
            visited.push(response.location);
            response = await this.request(response.location);
        }
        return { ...response, visited, url: visited.at(-1) };
    }

    // Signs in at the provider: its development pages ask for a login and for consent.
    async signIn(login) {
        let page = await this.open(`${ADMIN_URL}/account`);
        assert.match(page.text, /Sign in at 127\.0\.0\.1/);
        page = await this.open(new URL(/href="(\/sign-in\/oidc[^"]*)"/.exec(page.text)[1], ADMIN_URL).href);
        page = await this.open(page.url, { prompt: "login", login, password: "any" });
        return this.open(page.url, { prompt: "consent" });
    }
}

const browser = new Browser();
let page = await browser.signIn("lead");
assert.equal(page.url, `${ADMIN_URL}/account`);
assert.match(page.text, /<strong>lead@example\.com<\/strong> with the role <strong>admin<\/strong>/);
const callback = page.visited.find((url) => url.includes("/sign-in/callback"));
assert.equal((await browser.open(callback)).status, 401, "the callback works once");
assert.equal((await new Browser().open(callback)).status, 401, "the callback of another browser");
assert.equal((await browser.open(`${ADMIN_URL}/account`)).status, 200, "the session stays");

page = await new Browser().signIn("guest");
assert.equal(page.status, 403);
assert.match(page.text, /no role/);
console.log("signed in as lead@example.com; guest@example.com has no role");
server.close();
server.closeAllConnections();
