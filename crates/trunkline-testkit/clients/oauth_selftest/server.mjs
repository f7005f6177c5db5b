// Starts oauth_server.mjs, and calls its control API.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const SCRIPT = fileURLToPath(new URL("../../servers/oauth_server.mjs", import.meta.url));

/** A running server: its addresses, and the calls to control it. */
export async function start(flags) {
  const stdio = ["pipe", "pipe", "inherit"];
  const child = spawn(process.execPath, [SCRIPT, ...flags], { stdio });
  const [line] = await once(createInterface({ input: child.stdout }), "line");
  const addresses = JSON.parse(line);
  const call = async (method, path, body) => {
    const init = { method, ...(body && { body: JSON.stringify(body) }) };
    const response = await fetch(`${addresses.control_url}${path}`, init);
    if (!response.ok) throw new Error(await response.text());
    return response.json();
  };
  return {
    ...addresses,
    stats: () => call("GET", "/stats"),
    control: (path, body = {}) => call("POST", path, body),
    stop: () => child.stdin.end(),
  };
}
