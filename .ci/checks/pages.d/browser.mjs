// A headless Chromium, driven by the WebDriver protocol.
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const ARGUMENTS = [
  "--headless=new", "--no-sandbox", "--disable-background-networking", "--disable-component-update", "--disable-sync",
];
const ELEMENT = "element-6066-11e4-a52e-4f735466cecf";

export const KEYS = { enter: "\uE007", escape: "\uE00C", up: "\uE013", down: "\uE015" };

// The views of a page: name, colour scheme, width and height in CSS pixels.
export const VIEWS = {
  light: ["light", 1280, 860],
  dark: ["dark", 1280, 860],
  phone: ["light", 360, 740],
};

export class Browser {
  #driver;
  #data;
  #url;

  static async start() {
    const browser = new Browser();
    browser.#url = `http://127.0.0.1:${await browser.#startDriver()}`;
    browser.#data = mkdtempSync(join(tmpdir(), "chromium-"));
    const options = { args: [...ARGUMENTS, `--user-data-dir=${browser.#data}`] };
    const alwaysMatch = { "goog:loggingPrefs": { browser: "WARNING" }, "goog:chromeOptions": options };
    try {
      const { sessionId } = await browser.#call("POST", "/session", { capabilities: { alwaysMatch } });
      browser.#url += `/session/${sessionId}`;
    } catch (error) {
      browser.#driver.kill();
      throw error;
    }
    return browser;
  }

  // Starts the driver on a free port, and returns the port. It takes the same port of IPv4 and IPv6, which may be free of one only.
  async #startDriver(attempts = 5) {
    const driver = (this.#driver = spawn("chromedriver", ["--port=0"], { stdio: ["ignore", "pipe", "inherit"] }));
    let output = "";
    const port = await new Promise((resolve, reject) => {
      driver.on("error", reject);
      driver.on("exit", () => resolve(undefined));
      driver.stdout.on("data", (data) => {
        output += data;
        const started = /started successfully on port (\d+)/.exec(output);
        if (started) resolve(started[1]);
      });
    });
    if (port) return port;
    if (attempts === 1) throw new Error(output);
    return this.#startDriver(attempts - 1);
  }

  async stop() {
    try {
      await this.#call("DELETE", "");
    } finally {
      this.#driver.kill();
      rmSync(this.#data, { recursive: true, force: true, maxRetries: 10, retryDelay: 200 });
    }
  }

  async #call(method, path, body = {}) {
    const request = method === "POST" ? { method, body: JSON.stringify(body) } : { method };
    const { value } = await (await fetch(this.#url + path, request)).json();
    if (value?.error) throw new Error(`${path}: ${value.message}`);
    return value;
  }

  open(url) {
    return this.#call("POST", "/url", { url });
  }

  // Runs the body of a function in the page; a promise is awaited.
  run(script, ...args) {
    return this.#call("POST", "/execute/sync", { script, args });
  }

  // Runs it until the result is true.
  async wait(script, ...args) {
    const end = Date.now() + 10_000;
    while (!(await this.run(script, ...args))) {
      if (Date.now() > end) throw new Error(`not true in 10 s: ${script} ${args}`);
    }
  }

  // A command of the DevTools protocol.
  devtools(cmd, params = {}) {
    return this.#call("POST", "/goog/cdp/execute", { cmd, params });
  }

  async view([scheme, width, height]) {
    const features = [{ name: "prefers-color-scheme", value: scheme }];
    await this.devtools("Emulation.setEmulatedMedia", { features });
    const metrics = { width, height, deviceScaleFactor: 1, mobile: width < 600 };
    await this.devtools("Emulation.setDeviceMetricsOverride", metrics);
  }

  async click(selector) {
    const found = await this.#call("POST", "/element", { using: "css selector", value: selector });
    await this.#call("POST", `/element/${found[ELEMENT]}/click`);
  }

  type(text) {
    const keys = [...text].flatMap((value) => [{ type: "keyDown", value }, { type: "keyUp", value }]);
    return this.#call("POST", "/actions", { actions: [{ type: "key", id: "keyboard", actions: keys }] });
  }

  // The warnings and errors since the last call, also those of the content security policy.
  async complaints() {
    const entries = await this.#call("POST", "/se/log", { type: "browser" });
    return entries.map((entry) => entry.message);
  }
}
