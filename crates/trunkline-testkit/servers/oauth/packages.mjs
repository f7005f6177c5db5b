// The npm packages of the authorization server and the MCP server.

import { createRequire } from "node:module";

// The packages are not installed beside this file: `require` finds them through NODE_PATH.
const require = createRequire(import.meta.url);

export const { Provider, errors, interactionPolicy } = require("oidc-provider");
const server = require("@modelcontextprotocol/server");
export const { McpServer, createMcpHandler, fromJsonSchema } = server;
export const jose = require("jose");
