// Does everything with a server, with the TypeScript SDK of the older generation.
//
//   node exercise_sdk1.mjs SERVER
//
// SERVER is a URL, or a command line as a JSON array.

import { createRequire } from "node:module";
import { endpoint, exercise, filled } from "./exercise.mjs";

// The packages are not installed beside this file: `require` finds them through NODE_PATH.
const require = createRequire(import.meta.url);
const sdk = (path) => require(`@modelcontextprotocol/sdk/${path}.js`);
const { Client } = sdk("client/index");
const { StreamableHTTPClientTransport } = sdk("client/streamableHttp");
const { StdioClientTransport } = sdk("client/stdio");
const { ElicitRequestSchema } = sdk("types");

const server = endpoint(process.argv[2]);
const transport = server.url
  ? new StreamableHTTPClientTransport(server.url)
  : new StdioClientTransport(server);

let answered;
const client = new Client(
  { name: "exercise-sdk1", version: "1.0.0" },
  { capabilities: { elicitation: {} } },
);
client.setRequestHandler(ElicitRequestSchema, ({ params }) => ({
  action: "accept",
  content: filled(params.requestedSchema),
}));
// Over stdio only the client itself hears which version was agreed on.
transport.setProtocolVersion ??= (version) => (answered = version);

await exercise({
  client,
  transport,
  call: (name, args, options) => client.callTool({ name, arguments: args }, undefined, options),
  protocol: () => transport.protocolVersion ?? answered,
});
