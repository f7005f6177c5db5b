// The protected MCP server: checks the token, then serves both generations of the protocol.

import { createHash } from "node:crypto";
import { Readable } from "node:stream";
import * as dpop from "./dpop.mjs";
import { changed } from "./misbehaviour.mjs";
import { McpServer, createMcpHandler, fromJsonSchema } from "./packages.mjs";
import { RESOURCE_SCOPES } from "./provider.mjs";
import { features, misbehaviours } from "./settings.mjs";

/** The scope that every request needs, and those that tools need. */
const BASE_SCOPE = "read";
const TOOL_SCOPES = { write: "write" };

export const RESOURCE_METADATA_PATH = "/.well-known/oauth-protected-resource/mcp";

const handler = createMcpHandler(createServer);

/** The MCP server at `url`. `authorizationServer` returns the one in charge. */
export class ProtectedServer {
  #url;
  #authorizationServer;

  constructor(url, authorizationServer) {
    this.#url = url;
    this.#authorizationServer = authorizationServer;
  }

  get #metadataUrl() {
    return new URL(RESOURCE_METADATA_PATH, this.#url).href;
  }

  /** Protected resource metadata (RFC 9728). */
  metadata() {
    const document = {
      resource: this.#url,
      authorization_servers: [this.#authorizationServer().issuer],
      scopes_supported: RESOURCE_SCOPES.split(" "),
      bearer_methods_supported: ["header"],
      dpop_bound_access_tokens_required: ["required", "nonce"].includes(features.dpop),
    };
    return changed(document, misbehaviours(), "resourceMetadata");
  }

  async handle(request, response, body) {
    const { token, refusal } = await this.#authenticate(request);
    if (refusal) return this.#refuse(response, refusal);
    const missing = missingScope(token, body);
    if (missing) {
      return this.#refuse(response, { status: 403, error: "insufficient_scope", scope: missing });
    }
    const authInfo = {
      token: token.jti,
      clientId: token.clientId,
      scopes: [...token.scopes],
      extra: { subject: token.accountId ?? token.clientId },
    };
    const { method, headers } = request;
    const init = { method, headers: pairs(headers), ...(body && { body }) };
    const answer = await handler.fetch(new Request(this.#url, init), { authInfo });
    response.writeHead(answer.status, Object.fromEntries(answer.headers));
    if (answer.body) Readable.fromWeb(answer.body).pipe(response);
    else response.end();
  }

  async #authenticate(request) {
    const [scheme, value] = (request.headers.authorization ?? "").split(" ");
    if (!value) return { refusal: { status: 401, scope: BASE_SCOPE } };
    const token = await this.#find(value);
    const isBound = scheme.toLowerCase() === "dpop";
    const mustBeBound = ["required", "nonce"].includes(features.dpop);
    if (!token || isBound !== Boolean(token.jkt) || (mustBeBound && !isBound)) {
      return { refusal: { status: 401, error: "invalid_token", scope: BASE_SCOPE } };
    }
    const error = isBound && (await this.#proofRefusal(request, token));
    return error ? { refusal: { status: 401, error } } : { token };
  }

  /** The token, if the authorization server in charge issued it for this server. */
  async #find(value) {
    const { provider } = this.#authorizationServer();
    const token =
      (await provider.AccessToken.find(value)) ?? (await provider.ClientCredentials.find(value));
    return token?.aud === this.#url ? token : undefined;
  }

  #proofRefusal(request, token) {
    return dpop.refusal({
      proof: request.headers.dpop,
      token: token.jti,
      boundTo: token.jkt,
      method: request.method,
      url: this.#url,
      needsNonce: features.dpop === "nonce",
    });
  }

  #refuse(response, { status, error, scope }) {
    const scheme = ["required", "nonce"].includes(features.dpop) ? "DPoP" : "Bearer";
    const replaced = misbehaviours().find((each) => "challenge" in each);
    const metadata = replaced ? replaced.challenge : this.#metadataUrl;
    const parameters = { error, scope, resource_metadata: metadata };
    const isSet = ([, value]) => value !== undefined && value !== null;
    const list = Object.entries(parameters).filter(isSet);
    const text = list.map(([name, value]) => `${name}="${value}"`).join(", ");
    response.writeHead(status, {
      "www-authenticate": `${scheme} ${text}`,
      "content-type": "application/json",
      ...(error === "use_dpop_nonce" && { "dpop-nonce": dpop.nonce }),
    });
    response.end(JSON.stringify({ error: error ?? "unauthorized" }));
  }
}

/** The scope that the token lacks for a request. */
function missingScope(token, body) {
  let scope = BASE_SCOPE;
  try {
    const { method, params } = JSON.parse(body ?? "{}");
    if (method === "tools/call") scope = TOOL_SCOPES[params?.name] ?? BASE_SCOPE;
  } catch {
    // Text that is not JSON is for the SDK to refuse.
  }
  return token.scopes.has(scope) ? undefined : scope;
}

function pairs(headers) {
  const text = ([name, value]) => [name, Array.isArray(value) ? value.join(", ") : value];
  return Object.entries(headers).map(text);
}

/** A server for one request, with tools that tell what the token says. */
function createServer({ authInfo }) {
  const server = new McpServer({ name: "protected", version: "1.0.0" });
  const text = (value) => ({ content: [{ type: "text", text: value }] });
  const takesText = fromJsonSchema({
    type: "object",
    properties: { text: { type: "string" } },
    required: ["text"],
  });
  const description = "Returns the subject, client, scopes and a hash of the access token.";
  server.registerTool("whoami", { description }, () => text(JSON.stringify(identity(authInfo))));
  const echo = { description: "Returns its argument.", inputSchema: takesText };
  server.registerTool("echo", echo, ({ text: value }) => text(value));
  const write = { description: "Needs the scope `write`.", inputSchema: takesText };
  server.registerTool("write", write, ({ text: value }) => text(`wrote ${value}`));
  return server;
}

/** Names the token by a hash, because its text must not appear in results. */
function identity({ token, clientId, scopes, extra }) {
  const tokenId = createHash("sha256").update(token).digest("hex").slice(0, 16);
  return { subject: extra.subject, client_id: clientId, scopes, token_id: tokenId };
}
