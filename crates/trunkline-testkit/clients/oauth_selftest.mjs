// Drives oauth_server.mjs with independent OAuth clients: oauth4webapi, and the one of the
// TypeScript SDK of MCP. Prints a line for each flow that works; needs Node.js 22.
//
//   node oauth_selftest.mjs [NAME…]

import * as faults from "./oauth_selftest/faults.mjs";
import * as flows from "./oauth_selftest/flows.mjs";
import { start } from "./oauth_selftest/server.mjs";

const names = process.argv.slice(2);

/** One server for all flows with the same flags. */
const servers = new Map();

for (const [name, { flags = [], settings = {}, run }] of Object.entries({ ...flows, ...faults })) {
  if (names.length > 0 && !names.includes(name)) continue;
  const key = flags.join(" ");
  if (!servers.has(key)) servers.set(key, await start(flags));
  const server = servers.get(key);
  await server.control("/reset");
  await server.control("/settings", settings);
  try {
    await run(server);
    console.log(`ok ${name}`);
  } catch (error) {
    console.log(`FAILED ${name}`);
    console.error(error, await server.stats());
    process.exitCode = 1;
  }
}

for (const server of servers.values()) server.stop();
