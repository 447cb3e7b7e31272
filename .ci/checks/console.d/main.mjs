// Walks every page of the console that a link leads to, in each view and as each role; prints what is wrong, and fails if there
// is anything. SCREENSHOTS names a directory for pictures of the pages.
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { env, exit } from "node:process";
import { setTimeout } from "node:timers/promises";
import { Browser, VIEWS } from "../pages.d/browser.mjs";
import { prepare } from "./data.mjs";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

// Opens the forms, of dialogs none, and pauses the live tables first: axe would report rows that were replaced meanwhile. Colours follow from the view, target sizes from its width.
const RUN_AXE = `return (async () => {
  document.querySelectorAll("main details").forEach((form) => (form.open = !form.matches("td .action")));
  document.querySelector(".live [aria-pressed=false]")?.click();
  for (let frame = 0; frame < 2; frame++) await new Promise(requestAnimationFrame);
  const { violations } = await axe.run(document, { resultTypes: ["violations"], ...arguments[0] });
  return violations.map(({ id, nodes }) => id + ": " + nodes.map((node) => node.target + " " + node.html.slice(0, 120)).join("; "));
})()`;

// The form of the first row, a dialog before everything else.
const RUN_AXE_IN_DIALOG = `return (async () => {
  const dialog = document.querySelector("td .action");
  if (!dialog) return [];
  dialog.open = true;
  const { violations } = await axe.run(dialog, { resultTypes: ["violations"], ...arguments[0] });
  dialog.open = false;
  return violations.map(({ id, nodes }) => "dialog: " + id + ": " + nodes.map((node) => node.target).join("; "));
})()`;

// An opened value may be wide: its table scrolls.
const CUT_TABLES = `document.querySelectorAll(".scroll details").forEach((value) => (value.open = false));
  return [...document.querySelectorAll("main .scroll")].filter((table) => table.scrollWidth > table.clientWidth + 1)
  .map((table) => "the table " + table.getAttribute("aria-label") + " is cut: " + table.scrollWidth + " px in " + table.clientWidth)`;

// Bytes of the page, its style sheet and its script as they were sent.
const MAX_WEIGHT = 60_000;
const WEIGHT = `return [...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource").filter(({ initiatorType }) => /script|link/.test(initiatorType))]
  .reduce((sum, { encodedBodySize }) => sum + encodedBodySize, 0)`;

const AXE_OPTIONS = {
  light: { rules: { "target-size": { enabled: true } } },
  dark: { runOnly: ["color-contrast", "link-in-text-block"] },
  phone: { runOnly: ["scrollable-region-focusable", "target-size"] },
};

const LINKS = `return [...document.querySelectorAll("a[href]")].map((link) => link.pathname + link.search)`;

// Pages of one kind have one pattern: IDs and names are left out.
function patternOf(path) {
  const [, section, ...rest] = path.split("?")[0].split("/");
  return ["", section, ...rest.map((part, index) => (index === 0 || section === "actors" ? "*" : part))].join("/");
}

let findings = 0;

function report(place, found) {
  found.forEach((finding) => console.error(`${place}: ${finding}`));
  findings += found.length;
}

async function picture(browser, name) {
  if (!env.SCREENSHOTS) return;
  const { data } = await browser.devtools("Page.captureScreenshot", { format: "png", captureBeyondViewport: true });
  writeFileSync(join(env.SCREENSHOTS, `${name}.png`), Buffer.from(data, "base64"));
}

async function check(browser, role, path, view) {
  await browser.view(VIEWS[view]);
  await picture(browser, `${role}${patternOf(path).replaceAll("/", "_").replaceAll("*", "x")}-${view}`);
  const found = await browser.run(CUT_TABLES);
  found.push(...(await browser.run(RUN_AXE, AXE_OPTIONS[view])));
  found.push(...(await browser.run(RUN_AXE_IN_DIALOG, AXE_OPTIONS[view])));
  const width = await browser.run("return document.scrollingElement.scrollWidth");
  const weight = await browser.run(WEIGHT);
  if (weight > MAX_WEIGHT) found.push(`weighs ${weight} bytes`);
  if (width > VIEWS[view][1]) found.push(`scrolls sideways: ${width} px`);
  report(`${role} ${view} ${path}`, found);
}

async function signIn(browser, token) {
  await browser.devtools("Network.enable");
  await browser.devtools("Network.setExtraHTTPHeaders", { headers: { Authorization: `Bearer ${token}` } });
}

async function walk(browser, role, views) {
  const queue = ["/"];
  const seen = new Set(queue.map(patternOf));
  for (let path = queue.shift(); path; path = queue.shift()) {
    await browser.view(VIEWS.light);
    await browser.open(env.ADMIN_URL + path);
    for (const link of await browser.run(LINKS)) {
      // The actor of an endpoint may end before its page is opened.
      if (/^\/(docs|csv|actors\/delivery\/)/.test(link) || seen.has(patternOf(link))) continue;
      seen.add(patternOf(link));
      queue.push(link);
    }
    for (const view of views) await check(browser, role, path, view);
    report(`${role} ${path}`, await browser.complaints());
  }
  return seen.size;
}

async function submit(browser, slug, reason) {
  await browser.click(`details:has(form[action$='/${slug}']) summary`);
  if (reason) {
    await browser.click(`form[action$='/${slug}'] textarea`);
    await browser.type(reason);
  }
  await browser.click(`form[action$='/${slug}'] button`);
}

// An operator approves an order, another one confirms it: by mouse and keyboard, on a phone, under the content security policy.
async function decide(browser, order, tokens) {
  const text = "return document.querySelector('main').innerText";
  await browser.view(VIEWS.phone);
  await signIn(browser, tokens.operator);
  await browser.open(`${env.ADMIN_URL}/orders/${order}`);
  await submit(browser, "approve", "agreed by the check");
  await browser.wait("return location.pathname.startsWith('/requests/')");
  assert.match(await browser.run(text), /needs a second operator/);
  const request = await browser.run("return location.href");
  await signIn(browser, env.SECOND_TOKEN);
  await browser.open(request);
  await submit(browser, "confirm");
  await browser.wait("return document.querySelector('h1').textContent === 'The change was carried out'");
  await browser.open(`${env.ADMIN_URL}/orders/${order}`);
  assert.match(await browser.run(text), /DELIVERED[^]*agreed by the check/);
  await browser.click(".menu");
  assert(await browser.run("return document.querySelector('#menu a').checkVisibility()"), "the menu is hidden");
  report("decide", await browser.complaints());
}

const ENTER = "\uE007";
const OPEN_PALETTE = `document.activeElement.blur();
  document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "k", ctrlKey: true, bubbles: true }))`;
const IS_PALETTE = "return document.activeElement.matches('.palette input')";

// "/" goes to the search; the palette opens an action of the page and leads to other pages.
async function useKeyboard(browser, token, order) {
  await browser.view(VIEWS.light);
  await signIn(browser, token);
  await browser.open(`${env.ADMIN_URL}/orders/${order}`);
  await browser.click("main dl.facts a[href^='/partners/']");
  await browser.wait("return location.pathname.startsWith('/partners/')");
  await browser.type("/");
  assert(await browser.run("return document.activeElement.name === 'q'"), "the search has no focus");
  await browser.run(OPEN_PALETTE);
  await browser.wait(IS_PALETTE);
  await browser.type("top up");
  report("palette", await browser.run(RUN_AXE, AXE_OPTIONS.light));
  await browser.type(ENTER);
  await browser.wait("return document.querySelector('details[open] form[action$=\"/top-up\"]')?.contains(document.activeElement)");
  await browser.run(OPEN_PALETTE);
  await browser.wait(IS_PALETTE);
  await browser.type(`vendors${ENTER}`);
  await browser.wait("return location.pathname === '/vendors'");
  report("keyboard", await browser.complaints());
}

// A list asks for its count once it is loaded.
async function count(browser, token) {
  await signIn(browser, token);
  await browser.open(`${env.ADMIN_URL}/audit?limit=1`);
  await browser.wait("return /^[0-9,]+ entries$/.test(document.querySelector('#count')?.innerText)");
  report("count", await browser.complaints());
}

const ROWS = `tbody[sse-swap="actors.data"]`;
const MARK = `document.querySelector('${ROWS}').rows[0].dataset.seen = "yes"`;
const IS_REPLACED = "return !document.querySelector('[data-seen]')";
const KEYS = `return [...document.querySelector('${ROWS}').rows].filter((row) => !row.hidden).map((row) => row.cells[0].innerText)`;
const TICKS_MS = 2500;
const setHidden = (isHidden) => `Object.defineProperty(document, "hidden", { configurable: true, value: ${isHidden} });
  document.dispatchEvent(new Event("visibilitychange"));`;

// Charts are drawn; live rows are replaced, unless they are paused; sorting and filtering outlast a replacement.
async function watch(browser, token) {
  await signIn(browser, token);
  await browser.view(VIEWS.light);
  await browser.open(env.ADMIN_URL);
  await browser.wait("return document.querySelectorAll('figure.chart canvas').length === 3");
  await browser.open(`${env.ADMIN_URL}/actors`);
  await browser.run(MARK);
  await browser.wait(IS_REPLACED);
  await browser.click(".live button");
  await browser.run(MARK);
  await setTimeout(TICKS_MS);
  assert(!(await browser.run(IS_REPLACED)), "paused rows are replaced");
  await browser.click(".live button");
  await browser.wait(IS_REPLACED);
  await browser.run(setHidden(true));
  await browser.run(MARK);
  await setTimeout(TICKS_MS);
  assert(!(await browser.run(IS_REPLACED)), "a page that nobody sees is updated");
  await browser.run(setHidden(false));
  await browser.wait(IS_REPLACED);
  await browser.click(`table:has(${ROWS}) th .sort`);
  await browser.run(MARK);
  await browser.wait(IS_REPLACED);
  const keys = await browser.run(KEYS);
  assert(keys.length > 1);
  assert.deepEqual(keys, keys.toSorted((a, b) => b.localeCompare(a)), "sorted rows");
  await browser.click(`section:has(${ROWS}) .filter input`);
  await browser.type(keys[0]);
  await browser.run(MARK);
  await browser.wait(IS_REPLACED);
  assert.deepEqual(await browser.run(KEYS), [keys[0]], "filtered rows");
  report("live", await browser.complaints());
}

const CHOOSE_FILE = `const input = document.querySelector("form[action$='/import'] input[type=file]");
  const files = new DataTransfer();
  files.items.add(new File(["code\\nCONSOLE-FILE-1\\n\\"\\n"], "vouchers.csv", { type: "text/csv" }));
  input.files = files.files;`;

// A file is imported through the script, and the report replaces the page.
async function importFile(browser, product) {
  await browser.open(`${env.ADMIN_URL}/products/${product}`);
  await browser.click("details:has(form[action$='/import']) summary");
  await browser.click("form[action$='/import'] input[name=denomination]");
  await browser.type("25");
  await browser.run(CHOOSE_FILE);
  await browser.click("form[action$='/import'] button");
  await browser.wait("return document.querySelector('h1').textContent === 'Result of the import'");
  const text = await browser.run("return document.querySelector('main').innerText");
  assert.match(text, /Imported\s+1\b/);
  assert.match(text, /Rejected count\s+1\b/);
  assert.doesNotMatch(text, /CONSOLE-FILE/);
  report("import", await browser.complaints());
}

const { order, tokens, product } = await prepare();
const browser = await Browser.start();
try {
  await browser.devtools("Page.addScriptToEvaluateOnNewDocument", { source: axe });
  for (const [role, token] of Object.entries(tokens)) {
    await signIn(browser, token);
    const views = role === "admin" ? Object.keys(VIEWS) : ["light"];
    const pages = await walk(browser, role, views);
    assert(pages > 18, `only ${pages} kinds of pages were found`);
    console.log(`${role}: ${pages} kinds of pages in ${views}`);
  }
  await watch(browser, tokens.admin);
  await importFile(browser, product);
  await count(browser, tokens.admin);
  await useKeyboard(browser, tokens.admin, order);
  await decide(browser, order, tokens);
} finally {
  await browser.stop();
}
exit(findings ? 1 : 0);
