// Checks the documentation of both listeners in a browser; prints what is wrong, and fails if there is anything.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { env, exit } from "node:process";
import { checkBehaviour, search } from "./behaviour.mjs";
import { Browser, VIEWS } from "./browser.mjs";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

const COLOUR_RULES = ["color-contrast", "link-in-text-block"];

// The script reacts to a new width in the next frame.
const RUN_AXE = `return (async () => {
  for (let frame = 0; frame < 2; frame++) await new Promise(requestAnimationFrame);
  const { violations } = await axe.run(document, { resultTypes: ["violations"], ...arguments[0] });
  return violations.map(({ id, nodes }) => id + ": " + nodes.map((node) => node.target + " " + node.html.slice(0, 100)).join("; "));
})()`;

// The kinds of elements in a page: tag and classes, with those of the parent.
const KINDS = `
  const kind = (element) => element ? element.tagName + "." + element.className : "";
  return [...new Set([...document.querySelectorAll("body *")].map((one) => kind(one.parentElement) + " > " + kind(one)))]`;

// The kinds that axe has seen in a view.
const seen = Object.fromEntries(Object.keys(VIEWS).map((view) => [view, new Set()]));

let findings = 0;
let runs = 0;

// What axe checks of a page, if anything. Colours and sizes follow from the view and the kinds of elements, everything else from the
// page alone, but for blocks that are too wide for a phone.
function axeOptions(view, kinds) {
  const isNew = kinds.some((kind) => !seen[view].has(kind));
  kinds.forEach((kind) => seen[view].add(kind));
  if (view === "light" && !isNew) return { rules: Object.fromEntries(COLOUR_RULES.map((rule) => [rule, { enabled: false }])) };
  if (view === "phone" && !isNew) return { runOnly: ["scrollable-region-focusable"] };
  if (view !== "dark") return {};
  return isNew ? { runOnly: COLOUR_RULES } : undefined;
}

async function check(browser, name, view) {
  const found = [];
  const options = axeOptions(view, await browser.run(KINDS));
  if (options) {
    runs += 1;
    found.push(...(await browser.run(RUN_AXE, options)));
  }
  const width = await browser.run("return document.scrollingElement.scrollWidth");
  if (width > VIEWS[view][1]) found.push(`scrolls sideways: ${width} px`);
  found.push(...(await browser.complaints()));
  found.forEach((finding) => console.error(`${view}: ${name}: ${finding}`));
  findings += found.length;
}

async function checkPages(browser, url, paths) {
  for (const path of paths) {
    await browser.view(VIEWS.light);
    await browser.open(url + path);
    for (const view of Object.keys(VIEWS)) {
      await browser.view(VIEWS[view]);
      await check(browser, path, view);
    }
  }
  for (const view of Object.keys(VIEWS)) {
    await browser.view(VIEWS[view]);
    await browser.open(`${url}/docs`);
    await search(browser, "order");
    await check(browser, "search", view);
  }
  await browser.open(`${url}/docs`);
  await browser.click(".menu");
  await check(browser, "menu", "phone");
}

// Checks one listener; `isChecked` tells the pages that another listener has, too.
async function checkListener(url, isChecked) {
  const browser = await Browser.start();
  try {
    await browser.open(`${url}/docs`);
    const paths = await browser.run("return [...new Set([...document.querySelectorAll('.pages a')].map((link) => link.pathname))]");
    await checkBehaviour(browser, url, paths);
    await browser.devtools("Page.addScriptToEvaluateOnNewDocument", { source: axe });
    const unchecked = paths.filter((path) => !isChecked(path));
    await checkPages(browser, url, unchecked);
    console.log(`${url}: ${unchecked.length} pages in ${Object.keys(VIEWS)}`);
  } finally {
    await browser.stop();
  }
}

// Side by side. The guides are the same on both listeners.
const results = await Promise.allSettled([
  checkListener(env.DOCS_URL, () => false),
  checkListener(env.ADMIN_URL, (path) => !path.startsWith("/docs/reference")),
]);
for (const { reason } of results.filter(({ status }) => status === "rejected")) {
  console.error(reason);
  findings += 1;
}
console.log(`axe ran ${runs} times`);
exit(findings ? 1 : 0);
