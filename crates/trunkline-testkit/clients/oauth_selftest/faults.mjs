// What the control API and the misbehaviours do, seen by a client.

import assert from "node:assert/strict";
import { REDIRECT, discover, insecure, logIn, oauth, refresh, whoami } from "./client.mjs";

async function loggedIn(server) {
  const { as } = await discover(server.mcp_url);
  const client = server.clients.public;
  const tokens = await logIn(as, client, { resource: server.mcp_url, scope: "read" });
  return { as, client, tokens };
}

export const short_lifetime = {
  settings: { access_token_lifetime: 60 },
  async run(server) {
    const { tokens } = await loggedIn(server);
    assert.equal(tokens.expires_in, 60);
    await server.control("/clock", { offset_seconds: 59 });
    assert.equal((await whoami(server.mcp_url, tokens.access_token)).subject, "alice");
    await server.control("/clock", { offset_seconds: 61 });
    assert.equal((await whoami(server.mcp_url, tokens.access_token)).status, 401);
  },
};

export const stated_lifetime = {
  async run(server) {
    await server.control("/settings", { stated_lifetime: "omit" });
    assert.equal((await loggedIn(server)).tokens.expires_in, undefined);
    await server.control("/settings", { stated_lifetime: 5 });
    assert.equal((await loggedIn(server)).tokens.expires_in, 5);
  },
};

export const faults_of_the_token_endpoint = {
  async run(server) {
    const { as, client, tokens } = await loggedIn(server);
    const attempt = () => refresh(as, client, tokens.refresh_token);
    await server.control("/faults", { kind: "status", status: 500, times: 2 });
    await assert.rejects(attempt());
    await assert.rejects(attempt());
    await server.control("/faults", { kind: "status", status: 429, retry_after: 1 });
    await assert.rejects(attempt());
    await server.control("/faults", { kind: "status", status: 400, error: "invalid_grant" });
    await assert.rejects(attempt(), { error: "invalid_grant" });
    await server.control("/faults", { kind: "close" });
    await assert.rejects(attempt());
    await server.control("/faults", { kind: "slow", seconds: 1, grant_type: "refresh_token" });
    const began = Date.now();
    const fresh = await attempt();
    assert.ok(Date.now() - began >= 1000);
    await server.control("/faults", { kind: "lose" });
    await assert.rejects(refresh(as, client, fresh.refresh_token));
    // The token was used, although the client has no answer.
    await assert.rejects(refresh(as, client, fresh.refresh_token), { error: "invalid_grant" });
    const { requests, refresh_token_reuses: reuses } = await server.stats();
    const statuses = requests.filter((each) => each.grant_type === "refresh_token");
    assert.deepEqual(
      statuses.map(({ status }) => status),
      [500, 500, 429, 400, 0, 200, 0, 400],
    );
    assert.equal(reuses, 1);
  },
};

export const denial_and_revocation = {
  async run(server) {
    const { as, client, tokens } = await loggedIn(server);
    await server.control("/settings", { user: "deny" });
    await assert.rejects(loggedIn(server), { error: "access_denied" });
    await server.control("/rotate");
    await assert.rejects(refresh(as, client, tokens.refresh_token), { error: "invalid_grant" });
    await server.control("/reset");
    const again = await loggedIn(server);
    await server.control("/revoke", { tokens: "refresh" });
    await assert.rejects(refresh(as, client, again.tokens.refresh_token), {
      error: "invalid_grant",
    });
    assert.equal((await whoami(server.mcp_url, again.tokens.access_token)).subject, "alice");
  },
};

export const another_authorization_server_takes_over = {
  async run(server) {
    const { tokens } = await loggedIn(server);
    const { issuer } = await server.control("/migrate");
    assert.notEqual(issuer, server.issuer);
    assert.equal((await whoami(server.mcp_url, tokens.access_token)).status, 401);
    const moved = await loggedIn(server);
    assert.equal(moved.as.issuer, issuer);
    assert.equal((await whoami(server.mcp_url, moved.tokens.access_token)).subject, "alice");
  },
};

export const pkce_is_required = {
  async run(server) {
    const { as } = await discover(server.mcp_url);
    const url = new URL(as.authorization_endpoint);
    const client_id = server.clients.confidential.client_id;
    const parameters = { client_id, response_type: "code", redirect_uri: REDIRECT, scope: "read" };
    url.search = new URLSearchParams(parameters);
    const answer = await fetch(url, { redirect: "manual" });
    const { searchParams } = new URL(answer.headers.get("location"));
    assert.equal(searchParams.get("error"), "invalid_request");
  },
};

export const no_registration = {
  flags: ["--no-registration"],
  async run(server) {
    assert.equal((await discover(server.mcp_url)).as.registration_endpoint, undefined);
  },
};

/** A client that checks what OAuth asks it to check refuses to log in. */
const refused = (misbehaviour, message) => ({
  settings: { misbehaviours: [misbehaviour] },
  run: (server) => assert.rejects(loggedIn(server), { message }),
});

export const wrong_issuer = refused("wrong-issuer", /"issuer" property does not match/);
export const missing_iss = refused("missing-iss", /"iss" \(issuer\) missing/);
export const wrong_iss = refused("wrong-iss", /unexpected "iss"/);
export const wrong_state = refused("wrong-state", /unexpected "state"/);
export const metadata_redirect = refused("metadata-redirect", /unexpected HTTP status code/);
export const token_redirect = refused("token-redirect", /unexpected HTTP status code/);
export const file_authorization_server = refused(
  "file-authorization-server",
  /only HTTP and HTTPS/,
);

export const no_pkce = {
  settings: { misbehaviours: ["no-pkce"] },
  async run(server) {
    const { as } = await discover(server.mcp_url);
    assert.equal(as.code_challenge_methods_supported, undefined);
  },
};

export const resource_mismatch = {
  settings: { misbehaviours: ["resource-mismatch"] },
  async run(server) {
    const { resource } = await discover(server.mcp_url);
    assert.equal(resource.resource, "https://attacker.example.com/mcp");
  },
};

export const link_local_endpoints = {
  settings: { misbehaviours: ["link-local-endpoints"] },
  async run(server) {
    const { as } = await discover(server.mcp_url);
    assert.equal(new URL(as.token_endpoint).hostname, "169.254.169.254");
  },
};

/** A redirect that only a client without a check of redirects follows leads to the metadata. */
export const redirected_metadata = {
  settings: { misbehaviours: ["metadata-redirect"] },
  async run(server) {
    const address = new URL("/.well-known/oauth-authorization-server", server.issuer);
    assert.equal((await (await fetch(address)).json()).issuer, server.issuer);
  },
};

export const huge_metadata = {
  settings: { misbehaviours: ["huge-metadata"] },
  async run(server) {
    const address = new URL("/.well-known/oauth-authorization-server", server.issuer);
    const text = await (await fetch(address)).text();
    assert.ok(text.length > 10 * 1024 * 1024);
  },
};

export const slow_metadata = {
  settings: { misbehaviours: ["slow-metadata"] },
  async run(server) {
    const issuer = new URL(server.issuer);
    const signal = AbortSignal.timeout(500);
    const options = { algorithm: "oauth2", signal, ...insecure };
    const response = await oauth.discoveryRequest(issuer, options);
    await assert.rejects(response.text());
  },
};
