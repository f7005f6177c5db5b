// Lists the tools of an MCP server and calls one, with the TypeScript SDK.
//
//   node list_and_call.mjs SERVER TOOL ARGUMENTS
//
// SERVER is a URL, or a command line as a JSON array.

import { createRequire } from "node:module";

// The packages are not installed beside this file: `require` finds them through NODE_PATH.
const require = createRequire(import.meta.url);
const { Client } = require("@modelcontextprotocol/sdk/client/index.js");
const { StreamableHTTPClientTransport } = require(
  "@modelcontextprotocol/sdk/client/streamableHttp.js",
);
const { StdioClientTransport } = require("@modelcontextprotocol/sdk/client/stdio.js");

const [server, name, argumentsText] = process.argv.slice(2);

const client = new Client({ name: "list-and-call", version: "1.0.0" });
const open = () => {
  if (!server.startsWith("[")) return new StreamableHTTPClientTransport(new URL(server));
  const [command, ...args] = JSON.parse(server);
  return new StdioClientTransport({ command, args });
};
const transport = open();
await client.connect(transport);
await client.ping();
const { tools } = await client.listTools();
const result = await client.callTool({ name, arguments: JSON.parse(argumentsText) });
const report = {
  protocolVersion: transport.protocolVersion,
  server: client.getServerVersion().name,
  instructions: client.getInstructions(),
  tools: tools.map((tool) => tool.name),
  result,
};
await client.close();
console.log(JSON.stringify(report));
