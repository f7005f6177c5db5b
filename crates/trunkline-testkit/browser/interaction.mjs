// What a person does on the page: moves with the keyboard, searches, presses buttons while the page updates itself.

// Presses Tab through the page; every stop must show its focus, and buttons must be among them.
export async function keyboard(page, address, fail) {
  const MAX_STOPS = 60;
  await page.goto(address);
  await page.waitForTimeout(300);
  const expected = await page.evaluate(() =>
    document.querySelectorAll("main button, main a[href], main input:not([type=hidden]), main select").length);
  const isEmpty = await page.evaluate(() => document.querySelectorAll("a[href], button, input").length === 0);
  const seen = { stops: 0, links: 0, buttons: 0, fields: 0 };
  for (let stop = 0; stop < MAX_STOPS; stop += 1) {
    await page.keyboard.press("Tab");
    const focus = await page.evaluate(() => {
      const element = document.activeElement;
      if (!element || element === document.body) return null;
      const style = getComputedStyle(element);
      const box = element.getBoundingClientRect();
      return {
        tag: element.tagName,
        html: element.outerHTML.slice(0, 120),
        inMain: Boolean(element.closest("main")),
        visible: box.width > 0 && box.height > 0 && style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 1.5,
      };
    });
    if (!focus) break;
    seen.stops += 1;
    if (!focus.visible) fail("focus not visible", focus.html);
    if (!focus.inMain) continue;
    if (focus.tag === "A") seen.links += 1;
    else if (focus.tag === "BUTTON") seen.buttons += 1;
    else seen.fields += 1;
  }
  if (seen.stops === 0 && !isEmpty) fail("keyboard", "Tab reaches nothing");
  if (expected > 0 && seen.links + seen.buttons + seen.fields === 0) fail("keyboard", "Tab reaches nothing in main");
  return seen;
}

// Uses the page while events redraw it. Needs the servers of the test.
export async function live(page, options, fail, inspect) {
  const address = (path) => new URL(path, options.address).href;
  const check = (condition, kind, detail = "") => { if (!condition) fail(kind, detail); };

  const step = async (name, run) => {
    try {
      await run();
    } catch (error) {
      fail(name, String(error.message ?? error));
    }
  };
  await step("live update", () => liveUpdate(page, address, check, options));
  await step("search", () => search(page, address, check));
  await step("call", () => call(page, address, check, options));
  await inspect();
  await step("switch", () => switches(page, address, options));
  await inspect();
  await step("trust", () => decide(page, address));
  await inspect();
  await step("injection", () => injection(page, address, check));
  return { done: true };
}

// Changes something as another program would.
async function change(options, path) {
  const headers = { Authorization: `Bearer ${options.token}` };
  const response = await fetch(new URL(`/api/v1${path}`, options.address), { method: "POST", headers });
  if (!response.ok) throw new Error(`${path}: ${response.status}`);
}

// Waits for a condition in the page.
const until = (page, condition, argument) => page.waitForFunction(condition, argument, { timeout: 20000 });

// Focus and open details survive updates, and a button keeps the focus although its action changes.
async function liveUpdate(page, address, check, options) {
  const hasFocus = (locator) => locator.evaluate((element) => element === document.activeElement);
  await page.goto(address("/servers"));
  await page.locator("#live[data-state=live]").waitFor({ timeout: 20000 });
  await page.locator("#servers details summary").first().click();
  const stop = page.getByRole("button", { name: "Stop github", exact: true });
  await stop.focus();
  const before = await page.locator("#servers").innerText();
  await change(options, `/projects/${options.project}/servers/slack/stop`);
  await until(page, (text) => document.querySelector("#servers").innerText !== text, before);
  check(await hasFocus(stop), "update lost the focus");
  check(await page.locator("#servers details").first().evaluate((e) => e.open), "update closed details");
  await page.keyboard.press("Enter");
  const start = page.getByRole("button", { name: "Start github", exact: true });
  await start.waitFor({ timeout: 20000 });
  check(await hasFocus(start), "action lost the focus");
}

// The list follows the typing, updates keep both, and the address can be shared.
async function search(page, address, check) {
  await page.goto(address("/tools"));
  await page.locator("#tool-search").pressSequentially("postgres_", { delay: 40 });
  await until(page, () => document.querySelectorAll("#tools tbody tr").length === 2);
  check(page.url().includes("search=postgres_"), "search is not in the address", page.url());
  await page.waitForTimeout(2500);
  check((await page.locator("#tools tbody tr").count()) === 2, "update lost the search");
  check((await page.locator("#tool-search").inputValue()) === "postgres_", "update changed the search field");
}

// What the preview shows is what is sent.
async function call(page, address, check, options) {
  await page.goto(address(`/tool?project=${options.project}&server=github&name=github_search_code`));
  await page.locator('[name="/query"]').fill('a\n"b"');
  await page.locator('[name="/limit"]').fill("7");
  await until(page, () => document.querySelector("#call-preview pre")?.textContent.includes("7"));
  const preview = JSON.parse(await page.locator("#call-preview pre").innerText());
  await page.locator("#call-form button.primary").click();
  await page.locator("#call-sent pre").waitFor({ timeout: 20000 });
  const sent = JSON.parse(await page.locator("#call-sent pre").innerText());
  check(JSON.stringify(sent) === JSON.stringify({ limit: 7, query: 'a\n"b"' }), "sent arguments", JSON.stringify(sent));
  check(JSON.stringify(sent) === JSON.stringify(preview), "preview differs from what is sent", JSON.stringify(preview));
  if (options.screenshots) await page.screenshot({ path: `${options.screenshots}/light-result.png`, fullPage: true });
}

// Switches follow the server, and keep the focus.
async function switches(page, address, options) {
  await page.goto(address(`/conversations/${options.project}/refactoring`));
  await page.getByRole("switch", { name: "slack", exact: true }).focus();
  for (const state of ["false", "true"]) {
    await page.keyboard.press("Space");
    await until(page, (expected) => document.activeElement?.getAttribute("aria-checked") === expected, state);
  }
}

// A decision updates the count in the navigation.
async function decide(page, address) {
  await page.goto(address("/trust"));
  const count = Number.parseInt(await page.locator("#trust-count").innerText(), 10);
  await page.getByRole("button", { name: /^Block/ }).first().click();
  await until(page, (old) => Number(document.querySelector("#trust-count").innerText.trim().split(" ")[0] || 0) === old - 1, count);
}

// HTML that got past the escaping is inert: no script, no handler, no request.
async function injection(page, address, check) {
  await page.goto(address("/servers"));
  await page.locator("#live[data-state=live]").waitFor({ timeout: 20000 });
  const result = await page.evaluate(async () => {
    const element = document.createElement("div");
    element.setAttribute("hx-get", "/evil");
    element.setAttribute("hx-trigger", "load");
    element.setAttribute("hx-nonce", "guessed");
    document.querySelector("main").append(element);
    window.htmx.process(element);
    let sink = "open";
    try {
      element.innerHTML = "<img src=x onerror=alert(1)>";
    } catch {
      sink = "closed";
    }
    await new Promise((resolve) => setTimeout(resolve, 300));
    return { sink, reports: window.cspViolations.length, isStripped: !element.hasAttribute("hx-get") };
  });
  check(result.isStripped, "hx-csp kept an attribute without the nonce");
  check(result.reports > 0, "this harness does not see CSP reports");
  check(result.sink === "closed", "innerHTML takes strings: trusted types are not enforced");
}
