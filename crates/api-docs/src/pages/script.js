// Search, copy buttons, theme and the chosen language of the documentation. The pages are complete without it.
"use strict";

const status = document.getElementById("status");

function element(name, ...children) {
  const made = document.createElement(name);
  made.append(...children);
  return made;
}

// Copy buttons
async function copy(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  // Over plain HTTP browsers have only the old command.
  const area = document.body.appendChild(document.createElement("textarea"));
  const focused = document.activeElement;
  area.value = text;
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  focused.focus();
  if (!done) throw new Error("copying is not allowed");
}

for (const block of document.querySelectorAll(".code")) {
  const button = element("button", "Copy");
  button.type = "button";
  let reset;
  button.addEventListener("click", async () => {
    const text = block.querySelector("code").textContent;
    button.textContent = await copy(text).then(() => "Copied", () => "Not copied");
    status.textContent = button.textContent;
    clearTimeout(reset);
    reset = setTimeout(() => { button.textContent = "Copy"; status.textContent = ""; }, 2000);
  });
  block.querySelector("figcaption").append(button);
}

// Language tabs: a choice holds for all tabs, on later pages too.
function choose(language) {
  for (const tab of document.querySelectorAll(".tabs input")) {
    if (tab.value === language) tab.checked = true;
  }
}

document.addEventListener("change", ({ target }) => {
  if (!target.matches(".tabs input")) return;
  // Tabs above grow and shrink: the chosen ones stay where they are.
  const before = target.getBoundingClientRect().top;
  choose(target.value);
  scrollBy({ top: target.getBoundingClientRect().top - before, behavior: "instant" });
  try { localStorage.setItem("language", target.value); } catch { /* storage is disabled */ }
});
try { choose(localStorage.getItem("language")); } catch { /* storage is disabled */ }

// Theme: that of the system, or the chosen one. The dark colours are a media rule of tokens.css, which then holds always or never.
const THEMES = { system: "(prefers-color-scheme: dark)", light: "not all", dark: "all" };
const theme = document.getElementById("theme");
const dark = [...document.styleSheets]
  .flatMap((sheet) => [...sheet.cssRules])
  .find((rule) => rule.media?.mediaText === THEMES.system);

function paint(name) {
  dark.media.mediaText = THEMES[name];
  document.querySelector("meta[name=color-scheme]").content = { system: "light dark" }[name] ?? name;
  theme.textContent = `Theme: ${name}`;
}

function storedTheme() {
  try { return localStorage.getItem("theme") in THEMES ? localStorage.getItem("theme") : "system"; } catch { return "system"; }
}

if (dark) {
  let current = storedTheme();
  paint(current);
  theme.hidden = false;
  theme.addEventListener("click", () => {
    const names = Object.keys(THEMES);
    current = names[(names.indexOf(current) + 1) % names.length];
    paint(current);
    status.textContent = theme.textContent;
    try { localStorage.setItem("theme", current); } catch { /* storage is disabled */ }
  });
}

// Only blocks that scroll take the focus.
const resized = new ResizeObserver((blocks) => {
  for (const { target } of blocks) {
    if (target.scrollWidth > target.clientWidth) target.tabIndex = 0;
    else target.removeAttribute("tabindex");
  }
});
for (const block of document.querySelectorAll("pre, .scroll")) resized.observe(block);

// Outline: closed where it stands above the text, otherwise it marks the section that is read.
const outline = document.querySelector(".outline details");
const narrow = matchMedia("(max-width: 64rem)");
if (outline) {
  const links = [...outline.querySelectorAll("a")];
  const headings = links.map((link) => document.getElementById(decodeURIComponent(link.hash.slice(1))));
  const mark = () => {
    const current = headings.findLastIndex((heading) => heading.getBoundingClientRect().top < 120);
    links.forEach((link, at) => (at === current ? link.setAttribute("aria-current", "true") : link.removeAttribute("aria-current")));
  };
  const fold = () => { outline.open = !narrow.matches; };
  narrow.addEventListener("change", fold);
  document.addEventListener("scroll", mark, { passive: true });
  fold();
  mark();
}

// The menu begins at the current page.
const menu = document.getElementById("menu");
const reveal = () => menu.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest" });
menu.addEventListener("toggle", reveal);
reveal();

// Search
const input = document.getElementById("search");
const search = input.parentElement;
const results = document.getElementById("results");
const MOST = 12;
let index;

function load() {
  index ??= fetch("/docs/search.json").then((response) => (response.ok ? response.json() : Promise.reject(response.status)));
  // A failure is not kept: the next letter asks again.
  index.catch(() => { index = undefined; });
  return index;
}

// The text with its words marked
function marked(text, words) {
  const lower = text.toLowerCase();
  const parts = [];
  for (let at = 0; at < text.length;) {
    const starts = words.map((word) => [lower.indexOf(word, at), word]).filter(([start]) => start >= 0);
    const [start, word] = starts.sort((one, other) => one[0] - other[0] || other[1].length - one[1].length)[0] ?? [text.length, ""];
    parts.push(text.slice(at, start));
    if (word) parts.push(element("mark", text.slice(start, start + word.length)));
    at = start + Math.max(word.length, 1);
  }
  return parts;
}

function snippet(text, words) {
  const found = words.map((word) => text.toLowerCase().indexOf(word)).filter((at) => at >= 0);
  const start = Math.max(0, Math.min(...found, text.length) - 40);
  return marked((start ? "…" : "") + text.slice(start, start + 120), words);
}

async function show() {
  const query = input.value;
  const words = searchWords(query);
  if (!words.length) return close();
  let found = [];
  let message;
  try {
    found = findEntries(await load(), words);
    message = found.length ? `${found.length} ${found.length === 1 ? "result" : "results"}` : `No results for “${query.trim()}”`;
  } catch {
    message = "The search is not available";
  }
  // The reader has typed on, or left.
  if (input.value !== query || !search.contains(document.activeElement)) return;
  const rows = found.slice(0, MOST).map(([address, page, heading, text]) => {
    const title = heading ? `${page} › ${heading}` : page;
    const link = element("a", element("strong", ...marked(title, words)), element("span", ...snippet(text, words)));
    link.href = address;
    return element("li", link);
  });
  results.replaceChildren(element("p", found.length > MOST ? `First ${MOST} of ${message}` : message));
  if (rows.length) results.append(element("ul", ...rows));
  results.hidden = false;
  status.textContent = message;
}

function close() {
  results.hidden = true;
  status.textContent = "";
}

search.hidden = false;
input.addEventListener("input", show);
input.addEventListener("click", show);
input.addEventListener("focus", () => load().catch(() => {}));
search.addEventListener("keydown", (event) => {
  const links = results.hidden ? [] : [...results.querySelectorAll("a")];
  const at = links.indexOf(document.activeElement);
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (event.key === "Escape") {
    // The first Escape closes the results, the second one empties the field.
    if (!results.hidden) event.preventDefault();
    input.focus();
    close();
  } else if (event.key === "Enter" && at < 0 && links.length) {
    links[0].click();
  } else if (step) {
    if (results.hidden) show();
    else (links[at + step] ?? (step < 0 ? input : links[at]))?.focus();
    event.preventDefault();
  }
});
search.addEventListener("focusout", ({ relatedTarget }) => { if (!search.contains(relatedTarget)) close(); });
// Pressing a result must not end the focus: that would close the results before the click.
results.addEventListener("mousedown", (event) => event.preventDefault());
results.addEventListener("click", ({ target }) => { if (target.closest("a")) close(); });
document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input, textarea")) return;
  input.focus();
  event.preventDefault();
});
