// Logs in with the client of the TypeScript SDK of MCP.

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { REDIRECT } from "./client.mjs";

// The packages are not installed beside this file: `require` finds them through NODE_PATH.
const require = createRequire(import.meta.url);
const {
  Client,
  StreamableHTTPClientTransport,
  UnauthorizedError,
} = require("@modelcontextprotocol/client");

/** Keeps what the SDK gives it, and opens the address like a browser that stops at the callback. */
class Memory {
  redirectUrl = REDIRECT;
  clientMetadata = {
    client_name: "self-test",
    redirect_uris: [REDIRECT],
    grant_types: ["authorization_code", "refresh_token"],
    response_types: ["code"],
    token_endpoint_auth_method: "none",
    scope: "read",
  };
  clientInformation = () => this.client;
  saveClientInformation = (client) => void (this.client = client);
  tokens = () => this.saved;
  saveTokens = (tokens) => void (this.saved = tokens);
  codeVerifier = () => this.verifier;
  saveCodeVerifier = (verifier) => void (this.verifier = verifier);
  discoveryState = () => this.discovered;
  saveDiscoveryState = (state) => void (this.discovered = state);
  async redirectToAuthorization(url) {
    const response = await fetch(url, { redirect: "manual" });
    this.callback = new URL(response.headers.get("location")).searchParams;
  }
}

export async function sdkFlow(server, era) {
  const authProvider = new Memory();
  const mode = era === "modern" ? { pin: "2026-07-28" } : era;
  const connect = async () => {
    const transport = new StreamableHTTPClientTransport(new URL(server.mcp_url), { authProvider });
    const identity = { name: "self-test", version: "1.0.0" };
    const client = new Client(identity, { versionNegotiation: { mode } });
    try {
      await client.connect(transport);
      return client;
    } catch (error) {
      if (!(error instanceof UnauthorizedError)) throw error;
      await transport.finishAuth(authProvider.callback);
      return connect();
    }
  };
  const client = await connect();
  const { tools } = await client.listTools();
  assert.deepEqual(
    tools.map(({ name }) => name),
    ["whoami", "echo", "write"],
  );
  const whoami = async () => {
    const { content } = await client.callTool({ name: "whoami", arguments: {} });
    return JSON.parse(content[0].text);
  };
  const before = await whoami();
  assert.equal(before.subject, "alice");
  // The SDK refreshes when the server no longer knows the token.
  await server.control("/revoke", { tokens: "access" });
  const after = await whoami();
  assert.notEqual(after.token_id, before.token_id);
  assert.equal((await server.stats()).counts["token:refresh_token"], 1);
  await client.close();
}
