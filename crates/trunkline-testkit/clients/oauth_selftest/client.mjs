// A minimal OAuth client on oauth4webapi, and a minimal MCP client.

import { createRequire } from "node:module";

// The packages are not installed beside this file: `require` finds them through NODE_PATH.
const require = createRequire(import.meta.url);
export const oauth = require("oauth4webapi");

export const REDIRECT = "http://127.0.0.1:49152/callback";
/** The servers are on loopback, without TLS. */
export const insecure = { [oauth.allowInsecureRequests]: true };

/** Finds the authorization server of an MCP server, as its challenge says. */
export async function discover(mcpUrl) {
  const { status, challenge } = await request(mcpUrl, "tools/list");
  if (status !== 401) throw new Error(`expected a challenge, got ${status}`);
  const address = /resource_metadata="([^"]*)"/.exec(challenge)[1];
  const resource = await (await fetch(address)).json();
  const issuer = new URL(resource.authorization_servers[0]);
  const response = await oauth.discoveryRequest(issuer, { algorithm: "oauth2", ...insecure });
  return { resource, as: await oauth.processDiscoveryResponse(issuer, response) };
}

export async function register(as) {
  const metadata = {
    client_name: "self-test",
    application_type: "native",
    redirect_uris: ["http://127.0.0.1/callback"],
    grant_types: ["authorization_code", "refresh_token"],
    token_endpoint_auth_method: "none",
  };
  const response = await oauth.dynamicClientRegistrationRequest(as, metadata, insecure);
  return oauth.processDynamicClientRegistrationResponse(response);
}

/** Logs in with one request, and exchanges the code. */
export async function logIn(as, client, { resource, scope, authentication, DPoP }) {
  const verifier = oauth.generateRandomCodeVerifier();
  const state = oauth.generateRandomState();
  const url = new URL(as.authorization_endpoint);
  url.search = new URLSearchParams({
    client_id: client.client_id,
    response_type: "code",
    redirect_uri: REDIRECT,
    code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
    code_challenge_method: "S256",
    state,
    resource,
    scope,
  });
  const redirect = await fetch(url, { redirect: "manual" });
  const callback = new URL(redirect.headers.get("location"));
  const parameters = oauth.validateAuthResponse(as, client, callback, state);
  const exchange = () =>
    oauth.authorizationCodeGrantRequest(
      as,
      client,
      authentication ?? oauth.None(),
      parameters,
      REDIRECT,
      verifier,
      { additionalParameters: { resource }, DPoP, ...insecure },
    );
  return retryWithNonce(exchange, (response) =>
    oauth.processAuthorizationCodeResponse(as, client, response),
  );
}

export async function refresh(as, client, token, authentication = oauth.None()) {
  const response = await oauth.refreshTokenGrantRequest(
    as,
    client,
    authentication,
    token,
    insecure,
  );
  return oauth.processRefreshTokenResponse(as, client, response);
}

export async function clientCredentials(as, client, authentication, parameters) {
  const response = await oauth.clientCredentialsGrantRequest(
    as,
    client,
    authentication,
    parameters,
    insecure,
  );
  return oauth.processClientCredentialsResponse(as, client, response);
}

/** Sends a request again when the server asks for a nonce. */
export async function retryWithNonce(send, process) {
  try {
    return await process(await send());
  } catch (error) {
    if (!oauth.isDPoPNonceError(error)) throw error;
    return process(await send());
  }
}

/** One request of the older generation, which a stateless server answers without a session. */
export async function request(mcpUrl, method, params, token, extra = {}) {
  const response = await fetch(mcpUrl, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      ...(token && { authorization: `Bearer ${token}` }),
      ...extra,
    },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }),
  });
  return answerOf(response);
}

/** The status, the challenge and the result of a response. */
export async function answerOf(response) {
  const text = await response.text();
  const data = /^data: (.*)$/m.exec(text)?.[1] ?? text;
  const challenge = response.headers.get("www-authenticate");
  return { status: response.status, challenge, result: JSON.parse(data || "{}").result };
}

export async function whoami(mcpUrl, token) {
  const { status, result } = await request(mcpUrl, "tools/call", { name: "whoami" }, token);
  return status === 200 ? JSON.parse(result.content[0].text) : { status };
}
