// Live tables, charts, and forms that are sent once. Every page works without this script.
"use strict";

(() => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];

  // Forms: a second click sends nothing. A form that was left with the back button can be sent again.
  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (form.method !== "post") return;
    if (form.dataset.sent) return event.preventDefault();
    form.dataset.sent = "yes";
  });
  addEventListener("pageshow", () => all("form[data-sent]").forEach((form) => delete form.dataset.sent));

  // A form with a file is sent by htmx, and shows how much of it is sent.
  document.addEventListener("htmx:xhr:progress", ({ target, detail }) => {
    const bar = target.querySelector("progress");
    if (!bar || !detail.lengthComputable) return;
    bar.hidden = false;
    bar.value = (100 * detail.loaded) / detail.total;
  });
  document.addEventListener("htmx:sendError", ({ target }) => {
    delete target.dataset.sent;
    const message = document.createElement("p");
    message.className = "error";
    message.role = "alert";
    message.textContent = "The file was not sent completely. Check the fields and send it again: no voucher is imported twice.";
    target.querySelector("progress")?.replaceWith(message);
  });

  // "/" goes to the search, Ctrl+K opens a palette of the pages and of what this page changes.
  const search = document.querySelector("[role=search] input");

  document.addEventListener("keydown", (event) => {
    const isTyped = event.target.closest("input, select, textarea, [contenteditable]");
    if (event.key === "/" && !isTyped && search) {
      event.preventDefault();
      search.focus();
    } else if (event.key === "k" && (event.ctrlKey || event.metaKey) && search) {
      event.preventDefault();
      openPalette();
    }
  });

  function openPalette() {
    const palette = document.createElement("dialog");
    palette.className = "palette";
    palette.ariaLabel = "Pages and actions";
    palette.innerHTML = `<input type="search" role="combobox" aria-expanded="true" aria-controls="palette-list" aria-label="Page or action"
      placeholder="Page or action" autocomplete="off" spellcheck="false"><ul id="palette-list" role="listbox" aria-label="Results"></ul>`;
    const [input, list] = palette.children;
    const pages = all("#menu a").map((link) => [link.textContent.trim(), () => link.click()]);
    const actions = all("#content .actions summary").map((summary) => [summary.textContent.trim(), () => openAction(summary)]);
    let found = [];
    let chosen = 0;

    function show() {
      const text = input.value.trim().toLowerCase();
      found = [...actions, ...pages].filter(([name]) => name.toLowerCase().includes(text));
      if (text) found.push([`Search for “${input.value.trim()}”`, () => location.assign(`/search?q=${encodeURIComponent(input.value.trim())}`)]);
      chosen = Math.min(chosen, Math.max(found.length - 1, 0));
      list.replaceChildren(...found.map(([name, run], index) => {
        const option = document.createElement("li");
        option.role = "option";
        option.id = `palette-${index}`;
        option.ariaSelected = String(index === chosen);
        option.textContent = name;
        option.addEventListener("click", () => choose(run));
        return option;
      }));
      input.setAttribute("aria-activedescendant", found.length ? `palette-${chosen}` : "");
      list.children[chosen]?.scrollIntoView({ block: "nearest" });
    }

    function choose(run) {
      palette.close();
      run();
    }

    input.addEventListener("input", () => {
      chosen = 0;
      show();
    });
    input.addEventListener("keydown", (event) => {
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (step && found.length) chosen = (chosen + step + found.length) % found.length;
      else if (event.key === "Enter" && found.length) choose(found[chosen][1]);
      else return;
      event.preventDefault();
      show();
    });
    palette.addEventListener("close", () => palette.remove());
    document.querySelector("dialog.palette")?.close();
    document.body.append(palette);
    palette.showModal();
    show();
  }

  function openAction(summary) {
    summary.parentElement.open = true;
    summary.scrollIntoView({ block: "center" });
    (summary.parentElement.querySelector("form :is(input:not([type=hidden]), select, textarea, button)") ?? summary).focus();
  }

  // Sorting and filtering of live tables.
  const liveTables = all("table").filter((table) => table.querySelector("tbody[sse-swap]:not([sse-swap=sample])"));

  // Numbers have separators and units.
  const textOf = (row, column) => row.cells[column].innerText.trim().replace(/,(?=\d{3})| %$/g, "");

  function compare(left, right) {
    const [a, b] = [left, right].map(Number);
    if (Number.isNaN(a) || Number.isNaN(b)) return left.localeCompare(right);
    return a - b;
  }

  function arrange(table) {
    const body = table.tBodies[0];
    const filterText = (table.filterInput?.value ?? "").toLowerCase();
    for (const row of body.rows) row.hidden = !row.innerText.toLowerCase().includes(filterText);
    const column = all("th", table.tHead).findIndex((head) => head.ariaSort);
    if (column < 0) return;
    const direction = table.tHead.rows[0].cells[column].ariaSort === "descending" ? -1 : 1;
    const rows = [...body.rows].sort((a, b) => direction * compare(textOf(a, column), textOf(b, column)));
    body.append(...rows);
  }

  function makeSortable(table) {
    for (const head of table.tHead.rows[0].cells) {
      const button = document.createElement("button");
      button.type = "button";
      button.className = "sort";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const next = head.ariaSort === "descending" ? "ascending" : "descending";
        for (const other of table.tHead.rows[0].cells) other.ariaSort = null;
        head.ariaSort = next;
        arrange(table);
      });
    }
    const label = document.createElement("label");
    label.className = "filter";
    table.filterInput = document.createElement("input");
    table.filterInput.type = "search";
    table.filterInput.addEventListener("input", () => arrange(table));
    label.append(`Filter: ${table.caption.textContent} `, table.filterInput);
    table.closest(".scroll").before(label);
  }

  liveTables.forEach(makeSortable);

  // Live updates: state, and pause.
  const live = document.querySelector("[sse-connect]");
  let paused = false;

  if (live) {
    const bar = live.querySelector(".live");
    const [button, state] = [bar.querySelector("button"), bar.querySelector("[role=status]")];
    const setStatus = (text) => {
      if (state.textContent !== text) state.textContent = text;
    };
    bar.hidden = false;
    button.addEventListener("click", () => {
      paused = !paused;
      if (!paused) charts.forEach(load);
      button.ariaPressed = String(paused);
      setStatus(paused ? "Paused" : "Updated each second");
    });
    // The connection of the page. A new one replaces it.
    let source;
    // An event comes each second. The connection may hang without an error when the service has ended.
    const LOST_MS = 2500;
    let updatedAt = Date.now();
    setInterval(() => {
      if (paused || document.hidden || Date.now() - updatedAt < LOST_MS) return;
      setStatus(`Connection lost, last update ${utc(updatedAt / 1000).slice(11)} UTC`);
    }, 250);
    const createEventSource = htmx.createEventSource;
    htmx.createEventSource = (url) => {
      source?.close();
      return (source = createEventSource(url));
    };
    live.addEventListener("htmx:sseOpen", () => {
      if (document.hidden) source.close();
      setStatus(paused ? "Paused" : "Updated each second");
    });
    // A browser has few connections to a server: a page that nobody sees gives its own back.
    document.addEventListener("visibilitychange", () => {
      if (document.hidden) return source?.close();
      updatedAt = Date.now();
      if (source?.readyState === EventSource.CLOSED) {
        // The extension connects an element, and its tables to the connection, when htmx has processed them.
        for (const element of [live, ...all("[sse-swap]", live)]) htmx.trigger(element, "htmx:afterProcessNode");
        charts.forEach(load);
      }
    });
    live.addEventListener("htmx:sseError", ({ detail }) => {
      // When the server ends the feed, the browser connects again. A refused connection is tried again later.
      if (detail.source.readyState === EventSource.CLOSED) setStatus("Not updated now: the session may have ended");
    });
    live.addEventListener("htmx:sseBeforeMessage", (event) => {
      updatedAt = Date.now();
      if (!paused) setStatus("Updated each second");
      // A row with the focus stays, so that the keyboard does not lose its place.
      if (paused || event.target.contains(document.activeElement)) return event.preventDefault();
      if (event.target.getAttribute("sse-swap") === "chart") addSample(JSON.parse(event.detail.data));
    });
    live.addEventListener("htmx:sseMessage", ({ target }) => {
      const table = target.closest("table");
      if (liveTables.includes(table)) arrange(table);
    });
  }

  // Secrets that are shown once: buttons to copy and to download them.
  const makeButton = (label, onClick) => {
    const made = document.createElement("button");
    made.type = "button";
    made.textContent = label;
    made.addEventListener("click", () => onClick(made));
    return made;
  };
  for (const secret of all("[data-copy]")) {
    const copy = async (made) => {
      await navigator.clipboard.writeText(secret.textContent);
      made.textContent = "Copied";
    };
    if (navigator.clipboard) secret.after(" ", makeButton("Copy", copy));
  }
  document.addEventListener("keydown", ({ key }) => {
    if (key === "Escape") for (const form of all("td .action[open]")) form.open = false;
  });

  // Times are printed in UTC; the tooltip adds the time of the browser.
  document.addEventListener("mouseover", ({ target }) => {
    const time = target.closest?.("time[datetime]");
    if (time) time.title = `${time.dateTime} (${new Date(time.dateTime).toLocaleString()} here)`;
  });

  // IDs in tables are short: the button that appears beside one copies the whole.
  const offerCopy = ({ target }) => {
    const id = target.closest?.("[data-id]");
    if (!id || !navigator.clipboard || id.querySelector("button")) return;
    id.append(
      makeButton("Copy", async (made) => {
        await navigator.clipboard.writeText(id.dataset.id);
        made.textContent = "Copied";
      }),
    );
  };
  document.addEventListener("mouseover", offerCopy);
  document.addEventListener("focusin", offerCopy);
  for (const response of all("[data-json]")) {
    const download = () => {
      const link = document.createElement("a");
      link.href = URL.createObjectURL(new Blob([response.dataset.json], { type: "application/json" }));
      link.download = "vouchsafe-secret.json";
      link.click();
      URL.revokeObjectURL(link.href);
    };
    response.after(makeButton("Download as JSON", download));
  }

  // Charts.
  const RELOAD_MS = 30000;
  const POINTS = 600;
  const HEIGHT = 190;
  const DAY_MS = 24 * 60 * 60 * 1000;
  const MIN_SELECTION = 5;
  const charts = [];

  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  // Times are in UTC, as in the tables.
  const utc = (seconds) => new Date(seconds * 1000).toISOString().slice(0, 19).replace("T", " ");

  function columnsOf(samples, lines) {
    return [samples.map((sample) => Date.parse(sample.at) / 1000), ...lines.map(([, field]) => samples.map((sample) => sample[field]))];
  }

  // A value between two that are missing is no line.
  const lonePoints = ({ data }, line) => [...data[line].keys()].filter((index) => data[line][index] != null && [index - 1, index + 1].every((next) => data[line][next] == null));

  function draw(chart) {
    const { figure, lines, samples } = chart;
    const plot = figure.querySelector(".plot");
    chart.plot?.destroy();
    const axis = () => ({ stroke: colour("--soft"), grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line") } });
    const strokes = ["--link", "--number", "--keyword"];
    const series = lines.map(([label], index) => ({ label, stroke: colour(strokes[index % strokes.length]), width: 1.5, points: { show: false, filter: lonePoints } }));
    const [first, last] = [samples.at(0), samples.at(-1)].map((sample) => Date.parse(sample?.at));
    const isLong = last - first > DAY_MS;
    const { zoom } = figure.dataset;
    const select = ({ select: { left, width }, posToVal }) => {
      if (width < MIN_SELECTION) return;
      const [from, to] = [left, left + width].map((x) => new Date(posToVal(x, "x") * 1000).toISOString());
      location.assign(`${zoom}?${new URLSearchParams({ from, to })}`);
    };
    const options = {
      ...(zoom && { cursor: { drag: { setScale: false } }, hooks: { setSelect: [select] } }),
      width: Math.max(plot.clientWidth, 200),
      height: HEIGHT,
      axes: [{ ...axis(), space: 80, values: (_, ticks) => ticks.map((seconds) => (isLong ? utc(seconds).slice(5, 16) : utc(seconds).slice(11))) }, { ...axis(), size: 60 }],
      scales: { y: { range: (_, low, high) => [Math.min(low, 0), high > 0 ? high * 1.1 : 1] } },
      series: [{ label: "Time", value: (_, seconds) => (seconds == null ? "–" : utc(seconds)) }, ...series],
    };
    chart.plot = new uPlot(options, columnsOf(samples, lines), plot);
  }

  async function load(chart) {
    const { figure } = chart;
    try {
      const response = await fetch(figure.dataset.source, { headers: { Accept: "application/json" } });
      if (!response.ok) return;
      chart.samples = (await response.json())[figure.dataset.field];
      draw(chart);
    } catch {
      // The server is away; the next attempt or page load shows the chart.
    }
  }

  function addSample(sample) {
    if (!sample) return;
    for (const chart of charts.filter(({ figure }) => "live" in figure.dataset)) {
      if (!chart.plot) continue;
      chart.samples = [...chart.samples, sample].slice(-POINTS);
      chart.plot.setData(columnsOf(chart.samples, chart.lines));
    }
  }

  for (const figure of all("figure.chart")) {
    const chart = { figure, lines: JSON.parse(figure.dataset.lines), samples: [] };
    charts.push(chart);
    load(chart);
    if (!("live" in figure.dataset)) setInterval(() => paused || load(chart), RELOAD_MS);
  }

  const redraw = () => charts.filter(({ plot }) => plot).forEach(draw);
  let resizing;
  addEventListener("resize", () => {
    clearTimeout(resizing);
    resizing = setTimeout(redraw, 200);
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
})();
