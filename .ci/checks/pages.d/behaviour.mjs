// What the pages do: search, copy buttons, language tabs and the menu, with and without the script.
import assert from "node:assert/strict";
import { KEYS, VIEWS } from "./browser.mjs";

const RESULTS = "return !document.getElementById('results').hidden";
const STATUS = "return document.getElementById('status').textContent";
const FOCUSED = "return document.activeElement.id || document.activeElement.outerHTML";
const SHOWN_TABS =
  "return [...document.querySelectorAll('.tab')].filter((tab) => tab.checkVisibility()).map((tab) => tab.dataset.language)";

// Whether the first result is in sight: neither covered nor clipped.
const IN_SIGHT = `
  const { x, y, width, height } = document.querySelector("#results a, #results p").getBoundingClientRect();
  return document.elementFromPoint(x + width / 2, y + height / 2)?.closest("#results") !== null`;

// Opens the search with these words, and waits for its results.
export async function search(browser, words) {
  await browser.type("/");
  assert.equal(await browser.run(FOCUSED), "search");
  await browser.run("document.getElementById('search').value = ''");
  await browser.type(words);
  await browser.wait(RESULTS);
  assert(await browser.run(IN_SIGHT), "the results are hidden");
}

async function searchFinds(browser, url) {
  await browser.open(`${url}/docs`);
  await search(browser, "zzzz");
  await browser.wait("return document.getElementById('results').textContent === 'No results for “zzzz”'");
  assert.equal(await browser.run(STATUS), "No results for “zzzz”");
  await browser.type(KEYS.escape);
  assert.equal(await browser.run(RESULTS), false);
  await search(browser, "signing");
  await browser.wait("return document.querySelector('#results a')?.pathname === '/docs/signing'");
  assert.match(await browser.run(STATUS), /^\d+ results$/);
  await browser.type(KEYS.down + KEYS.down);
  assert.equal(await browser.run("return [...document.querySelectorAll('#results a')].indexOf(document.activeElement)"), 1);
  await browser.type(KEYS.up + KEYS.up);
  assert.equal(await browser.run(FOCUSED), "search");
  await browser.type(KEYS.down + KEYS.escape);
  assert.equal(await browser.run(RESULTS), false);
  assert.equal(await browser.run(FOCUSED), "search");
  await browser.type(KEYS.down);
  await browser.wait(RESULTS);
  await browser.type(KEYS.enter);
  await browser.wait("return location.pathname === '/docs/signing'");
}

async function searchReportsAFailure(browser, url) {
  await browser.devtools("Network.enable");
  await browser.devtools("Network.setBlockedURLs", { urls: ["*/search.json"] });
  await browser.open(`${url}/docs`);
  await search(browser, "order");
  assert.equal(await browser.run(STATUS), "The search is not available");
  await browser.devtools("Network.setBlockedURLs", { urls: [] });
  await browser.type("s");
  await browser.wait("return document.querySelector('#results a') !== null");
  // The blocked requests are errors.
  await browser.complaints();
}

async function buttonCopiesCode(browser, url) {
  await browser.devtools("Browser.grantPermissions", { permissions: ["clipboardReadWrite", "clipboardSanitizedWrite"] });
  await browser.open(`${url}/docs/quick-start`);
  await browser.click(".code button");
  await browser.wait(`${STATUS} === 'Copied'`);
  const copied = await browser.run("return navigator.clipboard.readText()");
  assert.equal(copied, await browser.run("return document.querySelector('.code code').textContent"));
  assert.match(copied, /^export VOUCHSAFE_BASE_URL=/);
}

async function languageIsRemembered(browser, url) {
  await browser.open(`${url}/docs/signing`);
  assert.deepEqual(await browser.run(SHOWN_TABS), ["sh"]);
  await browser.click(".tabs [value=python] + label");
  assert.deepEqual(await browser.run(SHOWN_TABS), ["python"]);
  await browser.open(`${url}/docs/webhooks`);
  assert.deepEqual(await browser.run(SHOWN_TABS), ["python"]);
}

async function pageWorksWithoutScript(browser, url) {
  await browser.devtools("Network.setBlockedURLs", { urls: ["*/script.js"] });
  await browser.open(`${url}/docs/signing`);
  assert.deepEqual(await browser.run(SHOWN_TABS), ["sh"]);
  await browser.click(".tabs [value=java] + label");
  assert.deepEqual(await browser.run(SHOWN_TABS), ["java"]);
  assert.equal(await browser.run("return document.querySelector('search').checkVisibility()"), false);
  assert.equal(await browser.run("return document.querySelector('.outline li a').checkVisibility()"), true);
  await menuOpensAndCloses(browser);
  await browser.devtools("Network.setBlockedURLs", { urls: [] });
  await browser.complaints();
}

async function menuOpensAndCloses(browser) {
  const shown = "return document.querySelector('.pages a').checkVisibility()";
  await browser.view(VIEWS.phone);
  assert.equal(await browser.run(shown), false);
  await browser.click(".menu");
  assert.equal(await browser.run(shown), true);
  await browser.type(KEYS.escape);
  assert.equal(await browser.run(shown), false);
  assert.match(await browser.run(FOCUSED), /class="menu"/);
  await browser.type(KEYS.enter);
  assert.equal(await browser.run(shown), true);
  await browser.view(VIEWS.light);
}

async function headEqualsGet(url, paths) {
  const headers = ["content-length", "content-type", "etag", "cache-control", "vary", "location"];
  const answer = async (path, method) => {
    const response = await fetch(url + path, { method, redirect: "manual", headers: { "Accept-Encoding": "gzip" } });
    await response.arrayBuffer();
    return [response.status, ...headers.map((name) => response.headers.get(name))];
  };
  for (const path of paths) assert.deepEqual(await answer(path, "HEAD"), await answer(path, "GET"), path);
}

// A key of the sandbox places an order from the page, and is neither stored nor taken by an address of another form.
async function requestIsSignedInTheBrowser(browser, url) {
  const { VOUCHSAFE_API_KEY: key, VOUCHSAFE_API_SECRET: secret } = process.env;
  const fill = (values) => browser.run(`
    const { elements } = document.getElementById("try");
    for (const [name, value] of Object.entries(arguments[0])) elements[name].value = value`, values);
  const outcome = "return document.getElementById('outcome').textContent";
  await browser.open(`${url}/docs/try`);
  await fill({ key, secret });
  await browser.run(`
    const { operation } = document.getElementById("try").elements;
    operation.selectedIndex = [...operation.options].findIndex((option) => option.textContent === "POST /orders");
    operation.dispatchEvent(new Event("change"))`);
  await fill({ body: '{"items":[{"product_id":"sbx-instant","denomination":25,"quantity":1}]}' });
  await browser.click("#try button");
  await browser.wait(`${outcome} === '201 Created'`);
  assert.match(await browser.run("return document.getElementById('answer-body').textContent"), /"total_amount": 25\.00/);
  assert.match(await browser.run("return document.getElementById('signed').textContent"), /^\d{10}POST\/api\/v1\/orders\{/);
  assert.equal(await browser.run("return JSON.stringify([localStorage, sessionStorage]).includes(arguments[0])", secret), false);
  await fill({ path: "//other.example/api/v1/orders" });
  await browser.click("#try button");
  await browser.wait(`${outcome}.startsWith('The path begins with')`);
}

export async function checkBehaviour(browser, url, paths) {
  await browser.view(VIEWS.light);
  await browser.open(`${url}/docs`);
  await searchFinds(browser, url);
  await searchReportsAFailure(browser, url);
  await buttonCopiesCode(browser, url);
  await languageIsRemembered(browser, url);
  await browser.open(`${url}/docs`);
  await menuOpensAndCloses(browser);
  await browser.run("localStorage.clear()");
  await pageWorksWithoutScript(browser, url);
  if (paths.includes("/docs/try")) await requestIsSignedInTheBrowser(browser, url);
  const files = ["/favicon.ico", "/docs/tokens.css", "/docs/style.css", "/docs/script.js", "/docs/search.json", "/docs/nowhere", "/openapi.json"];
  await headEqualsGet(url, [...files, ...paths]);
}
