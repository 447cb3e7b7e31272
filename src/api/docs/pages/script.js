// Search, copy buttons and the chosen language of the documentation. The pages are complete without it.
"use strict";

// Copy buttons
function copy(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  // Over plain HTTP browsers have only the old command.
  const area = document.body.appendChild(document.createElement("textarea"));
  area.value = text;
  area.select();
  document.execCommand("copy");
  area.remove();
  return Promise.resolve();
}

for (const block of document.querySelectorAll(".code")) {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = "Copy";
  button.addEventListener("click", async () => {
    await copy(block.querySelector("code").textContent);
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  });
  block.append(button);
}

// Language tabs: a choice holds for all tabs, on later pages too.
function choose(language) {
  for (const input of document.querySelectorAll(".tabs input")) {
    if (input.value === language) input.checked = true;
  }
}

document.addEventListener("change", ({ target }) => {
  if (!target.matches(".tabs input")) return;
  choose(target.value);
  try { localStorage.setItem("language", target.value); } catch { /* storage is disabled */ }
});
try { choose(localStorage.getItem("language")); } catch { /* storage is disabled */ }

// Search
const input = document.getElementById("search");
const results = document.getElementById("results");
let entries;

function find(query) {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  const rank = ([address, page, heading, text]) => {
    const [title, section, body] = [page, heading, text].map((part) => part.toLowerCase());
    let sum = 0;
    for (const word of words) {
      const points = (title.includes(word) ? (heading ? 3 : 12) : 0) + (section.includes(word) ? 6 : 0) + (body.includes(word) ? 1 : 0);
      if (!points) return 0;
      sum += points;
    }
    return sum + (address.includes("/schemas/") ? 0 : 0.5);
  };
  const ranked = entries.map((entry) => [rank(entry), entry]).filter(([points]) => points);
  return [words, ranked.sort((one, other) => other[0] - one[0]).slice(0, 12).map(([, entry]) => entry)];
}

function element(name, text, ...children) {
  const made = document.createElement(name);
  made.append(text, ...children);
  return made;
}

function snippet(text, word) {
  const start = Math.max(0, text.toLowerCase().indexOf(word) - 40);
  return (start ? "…" : "") + text.slice(start, start + 120);
}

async function show() {
  entries ??= await (await fetch("/docs/search.json")).json();
  const [words, found] = find(input.value);
  results.hidden = !words.length;
  const rows = found.map(([address, page, heading, text]) => {
    const link = element("a", element("strong", heading ? `${page} › ${heading}` : page), element("span", snippet(text, words[0])));
    link.href = address;
    return element("li", link);
  });
  const count = element("p", rows.length ? `${rows.length === 12 ? "First 12" : rows.length} results` : "No results");
  count.setAttribute("role", "status");
  results.replaceChildren(count, element("ul", "", ...rows));
}

function close() {
  results.hidden = true;
}

input.parentElement.hidden = false;
input.addEventListener("input", show);
input.addEventListener("focus", () => { if (input.value) show(); });
input.parentElement.addEventListener("keydown", (event) => {
  const links = [...results.querySelectorAll("a")];
  const at = links.indexOf(document.activeElement);
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (event.key === "Escape") {
    close();
    input.focus();
  } else if (event.key === "Enter" && at < 0 && links.length) {
    location.href = links[0].href;
  } else if (step && links.length) {
    (links[at + step] ?? input).focus();
    event.preventDefault();
  }
});
document.addEventListener("click", (event) => { if (!input.parentElement.contains(event.target) || event.target.closest("a")) close(); });
document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.target.matches("input, textarea")) return;
  input.focus();
  event.preventDefault();
});
