// An authorization server and an MCP server that it protects, on loopback.
//
//   node oauth_server.mjs [FLAG…]
//
// oauth/settings.mjs lists the flags. Prints one line of JSON with its addresses and clients when
// it is ready, and ends when its standard input does. oauth/control.mjs has the calls to control
// it. Needs Node.js 22.

import { once } from "node:events";
import { createServer } from "node:http";
import "./oauth/clock.mjs";
import { credentials } from "./oauth/clients.mjs";
import { control } from "./oauth/control.mjs";
import { replacement } from "./oauth/misbehaviour.mjs";
import { createAuthorizationServer } from "./oauth/provider.mjs";
import { ProtectedServer, RESOURCE_METADATA_PATH } from "./oauth/resource.mjs";
import { features, misbehaviours } from "./oauth/settings.mjs";
import { endpointAt, fail, record, recordReuse } from "./oauth/traffic.mjs";

// Standard output is for the line with the addresses.
console.info = console.warn = () => {};

const MAX_BODY_BYTES = 1024 * 1024;

/** Serves a site on a free port, and returns its origin. Requests carry the name in statistics. */
async function listen(name, site) {
  const server = createServer((request, response) => {
    serve(name, site, request, response).catch((error) => {
      console.error(error);
      if (response.headersSent) response.destroy();
      else response.writeHead(500).end(String(error));
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return `http://127.0.0.1:${server.address().port}`;
}

/** The authorization server in charge, and how another one takes over. */
const servers = {
  current: undefined,
  first: undefined,
  second: undefined,
  async migrate() {
    this.second ??= await start("second");
    this.current = this.second;
    return this.current.issuer;
  },
  reset() {
    this.first.storage.clearAll();
    this.second?.storage.clearAll();
    this.current = this.first;
  },
};

/** Starts an authorization server on a port of its own. */
async function start(name) {
  const site = {};
  return addAuthorizationServer(site, await listen(name, site));
}

function addAuthorizationServer(site, issuer) {
  site.authorization = createAuthorizationServer(issuer, mcpUrl);
  site.authorization.provider.on("grant.error", (_context, error) => {
    if (error.error_detail === "refresh token already used") recordReuse();
  });
  return site.authorization;
}

/** Answers a request to a site, which has an authorization server, an MCP server or both. */
async function serve(name, { authorization, mcp }, request, response) {
  const { method } = request;
  const path = new URL(request.url, "http://localhost").pathname;
  const body = await read(request);
  if (path.startsWith("/control/")) return answerControl({ method, path, body }, response);
  const endpoint = endpointAt(path);
  const grantType = endpoint === "token" ? new URLSearchParams(body).get("grant_type") : undefined;
  record({ server: name, endpoint, method, path, grantType }, response);
  if (await fail({ endpoint, grantType }, response)) return;
  const replaced = replacement(misbehaviours(), endpoint);
  if (replaced) return replaced(response);
  if (mcp && endpoint === "mcp") return mcp.handle(request, response, body);
  if (mcp && path === RESOURCE_METADATA_PATH) return answer(response, mcp.metadata());
  if (!authorization) return response.writeHead(404).end();
  request.body = body;
  if (path.startsWith("/moved/")) request.url = "/.well-known/oauth-authorization-server";
  return authorization.handle(request, response, path);
}

async function answerControl(call, response) {
  answer(response, await control(servers, call));
}

function answer(response, document) {
  response.writeHead(200, { "content-type": "application/json" });
  response.end(JSON.stringify(document));
}

async function read(request) {
  const chunks = [];
  let size = 0;
  for await (const chunk of request) {
    size += chunk.length;
    if (size > MAX_BODY_BYTES) throw new Error("the request is too large");
    chunks.push(chunk);
  }
  return chunks.length > 0 ? Buffer.concat(chunks).toString() : undefined;
}

const site = {};
const origin = await listen("first", site);
const mcpUrl = `${origin}/mcp`;
site.mcp = new ProtectedServer(mcpUrl, () => servers.current);
servers.first = features.separateAuthorizationServer
  ? await start("first")
  : addAuthorizationServer(site, origin);
servers.current = servers.first;

const addresses = {
  mcp_url: mcpUrl,
  issuer: servers.current.issuer,
  control_url: `${origin}/control`,
  clients: credentials,
};
console.log(JSON.stringify(addresses));

process.stdin.resume();
process.stdin.on("end", () => process.exit(0));
