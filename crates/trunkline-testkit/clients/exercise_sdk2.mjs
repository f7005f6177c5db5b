// Does everything with a server, with the TypeScript client that speaks both generations.
//
//   node exercise_sdk2.mjs SERVER ERA
//
// SERVER is a URL, or a command line as a JSON array; ERA is `legacy`, `auto` or `modern`.

import { createRequire } from "node:module";
import { endpoint, exercise, filled } from "./exercise.mjs";

// The packages are not installed beside this file: `require` finds them through NODE_PATH.
const require = createRequire(import.meta.url);
const { Client, StreamableHTTPClientTransport } = require("@modelcontextprotocol/client");
const { StdioClientTransport } = require("@modelcontextprotocol/client/stdio");

const [address, era] = process.argv.slice(2);
const server = endpoint(address);
const transport = server.url
  ? new StreamableHTTPClientTransport(server.url)
  : new StdioClientTransport(server);

const mode = era === "modern" ? { pin: "2026-07-28" } : era;
const client = new Client(
  { name: "exercise-sdk2", version: "1.0.0" },
  { capabilities: { elicitation: {} }, versionNegotiation: { mode } },
);
client.setRequestHandler("elicitation/create", ({ params }) => ({
  action: "accept",
  content: filled(params.requestedSchema),
}));

await exercise({
  client,
  transport,
  call: (name, args, options) => client.callTool({ name, arguments: args }, options),
  protocol: () => client.getNegotiatedProtocolVersion(),
});
