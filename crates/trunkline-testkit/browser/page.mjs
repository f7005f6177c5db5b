// Visits the control page with a real browser and reports what a user or an attacker would notice.
//
//   node page.mjs --address http://127.0.0.1:4080 --chromium /usr/bin/chromium --screenshots DIR [--token TOKEN]
//
// Prints JSON and ends with 1 if anything failed.
import { createRequire } from "node:module";
import { mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { parseArgs } from "node:util";

import { keyboard, live } from "./interaction.mjs";

// An `import` would look for packages beside this file; `require` uses NODE_PATH.
const require = createRequire(import.meta.url);
const { chromium } = require("playwright-core");

const { values: options } = parseArgs({
  options: {
    address: { type: "string" },
    chromium: { type: "string" },
    screenshots: { type: "string" },
    // The token of the control API, with which each browser context gets a login link.
    token: { type: "string" },
    // The project that the interactions use.
    project: { type: "string" },
    // Addresses to visit instead of the default ones; may be repeated.
    path: { type: "string", multiple: true },
    // Whether to use buttons and switches too; the server must be the mock or one that may be changed.
    interact: { type: "boolean", default: false },
  },
});
if (!options.address || !options.chromium) {
  console.error("usage: page.mjs --address URL --chromium PATH [--screenshots DIR] [--token TOKEN] [--path PATH]... [--interact]");
  process.exit(2);
}
const origin = new URL(options.address).origin;
const axeSource = await readFile(require.resolve("axe-core/axe.min.js"), "utf8");
const paths = options.path ?? ["/servers", "/tools", "/calls", "/conversations", "/trust"];
const views = [
  { name: "light", colorScheme: "light", viewport: { width: 1280, height: 900 } },
  { name: "dark", colorScheme: "dark", viewport: { width: 1280, height: 900 } },
  { name: "phone", colorScheme: "light", viewport: { width: 360, height: 740 } },
];
// Hidden tabs close their event stream; a headless one must not count as hidden. The sandbox needs
// user namespaces, which containers lack, and the only pages here are our own.
const browser = await chromium.launch({ executablePath: options.chromium, args: ["--no-sandbox", "--disable-dev-shm-usage"] });
// Addresses that answer with an error status on purpose; browsers log those.
const EXPECTED_STATUS = [/\/login$/];
const problems = [];
const checks = [];

// Opens a session by a link, which works once.
async function logIn(page) {
  if (!options.token) return;
  const headers = { Authorization: `Bearer ${options.token}` };
  const response = await fetch(new URL("/api/v1/login-links", origin), { method: "POST", headers });
  await page.goto((await response.json()).url);
}

// Records everything that must not happen on a page.
function watch(page, where) {
  const report = (kind, detail) => problems.push({ where: where(), kind, detail: String(detail).slice(0, 600) });
  page.on("console", (message) => {
    const isExpected = EXPECTED_STATUS.some((pattern) => pattern.test(message.location().url));
    if (isExpected && message.text().startsWith("Failed to load resource")) return;
    // What the step "injection" provokes.
    if (/hx-csp\] blocked <div>: nonce mismatch|requires 'TrustedHTML' assignment/.test(message.text())) return;
    if (message.type() === "error" || message.type() === "warning") report(`console ${message.type()}`, message.text());
  });
  page.on("pageerror", (error) => report("page error", error.stack ?? error));
  page.on("dialog", async (dialog) => {
    report("dialog", dialog.message());
    await dialog.dismiss();
  });
  page.on("popup", (popup) => report("popup", popup.url()));
  page.on("request", (request) => {
    const url = request.url();
    if (!url.startsWith(`${origin}/`) && !url.startsWith("data:")) report("foreign request", url);
    if (/evil/.test(url)) report("injected request", url);
  });
}

// CSP reports reach the page as events before any script of the page runs.
const collectViolations = () => {
  window.cspViolations = [];
  document.addEventListener("securitypolicyviolation", (event) => {
    window.cspViolations.push(`${event.effectiveDirective} ${event.blockedURI} ${event.sourceFile}:${event.lineNumber} ${event.sample}`);
  });
};

async function inspect(page, where) {
  for (const violation of await page.evaluate(() => window.cspViolations)) {
    problems.push({ where, kind: "CSP violation", detail: violation });
  }
  const overflow = await page.evaluate(() => {
    const width = document.documentElement.clientWidth;
    if (document.documentElement.scrollWidth <= width) return [];
    const wide = [...document.querySelectorAll("body *")].filter((e) => e.getBoundingClientRect().right > width + 1);
    return wide.slice(0, 5).map((e) => `${e.tagName}.${e.className}#${e.id}`);
  });
  if (overflow.length) problems.push({ where, kind: "horizontal overflow", detail: overflow.join(", ") });
  await page.evaluate(axeSource);
  const { violations } = await page.evaluate(() =>
    window.axe.run(document, { runOnly: { type: "tag", values: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"] } }));
  for (const violation of violations) {
    const nodes = violation.nodes.slice(0, 3).map((node) => `${node.target}: ${node.failureSummary}`);
    problems.push({ where, kind: `axe ${violation.id}`, detail: `${violation.help} (${violation.nodes.length}): ${nodes.join(" | ")}` });
  }
}

async function visit(context, view, path) {
  const where = `${view.name} ${path}`;
  const page = await context.newPage();
  watch(page, () => where);
  await page.addInitScript(collectViolations);
  const response = await page.goto(new URL(path, options.address).href, { waitUntil: "load" });
  const csp = response.headers()["content-security-policy"] ?? "";
  if (!csp.includes("default-src 'none'") || csp.includes("unsafe-")) problems.push({ where, kind: "CSP header", detail: csp });
  // Long enough for the event stream to connect and to redraw the parts.
  await page.waitForTimeout(1000);
  await inspect(page, where);
  if (options.screenshots) {
    const file = `${view.name}${path.replace(/[^a-z0-9]+/gi, "-").slice(0, 60)}.png`;
    await page.screenshot({ path: join(options.screenshots, file) });
  }
  checks.push({ where, status: response.status() });
  await page.close();
}

// Everything can be read without JavaScript.
async function withoutScripts() {
  const context = await browser.newContext({ javaScriptEnabled: false });
  const page = await context.newPage();
  await logIn(page);
  for (const path of paths) {
    await page.goto(new URL(path, options.address).href);
    const text = await page.locator("main").innerText();
    if (!(await page.locator("h1").count()) || text.length < 40) {
      problems.push({ where: `without scripts ${path}`, kind: "empty page", detail: text });
    }
  }
  await context.close();
}

if (options.screenshots) await mkdir(options.screenshots, { recursive: true });
for (const view of views) {
  const context = await browser.newContext({ colorScheme: view.colorScheme, viewport: view.viewport });
  await logIn(await context.newPage());
  for (const path of paths) await visit(context, view, path);
  if (view.name === "light") {
    const page = await context.newPage();
    let where = "keyboard";
    watch(page, () => where);
    await page.addInitScript(collectViolations);
    const fail = (kind, detail) => problems.push({ where, kind, detail });
    for (const path of paths) {
      where = `keyboard ${path}`;
      checks.push({ where, ...(await keyboard(page, new URL(path, options.address).href, fail)) });
    }
    if (options.interact) {
      where = "interaction";
      checks.push({ where, ...(await live(page, options, fail, () => inspect(page, "interaction"))) });
    }
    await page.close();
  }
  await context.close();
}
await withoutScripts();
await browser.close();
console.log(JSON.stringify({ ok: problems.length === 0, checks, problems }, null, 2));
process.exit(problems.length === 0 ? 0 : 1);
