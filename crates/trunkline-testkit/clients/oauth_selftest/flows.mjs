// The flows that work: login, refresh, revocation, device, client credentials, DPoP, documents.

import assert from "node:assert/strict";
import { createPrivateKey } from "node:crypto";
import {
  answerOf,
  clientCredentials,
  discover,
  insecure,
  logIn,
  oauth,
  refresh,
  register,
  request,
  retryWithNonce,
  whoami,
} from "./client.mjs";
import { sdkFlow } from "./sdk.mjs";

export const registration_login_refresh_revocation = {
  async run(server) {
    const { as, resource } = await discover(server.mcp_url);
    assert.equal(resource.resource, server.mcp_url);
    const client = await register(as);
    const first = await logIn(as, client, { resource: server.mcp_url, scope: "read" });
    const identity = await whoami(server.mcp_url, first.access_token);
    assert.equal(identity.subject, "alice");
    assert.equal(identity.client_id, client.client_id);
    assert.deepEqual(identity.scopes, ["read"]);

    const second = await refresh(as, client, first.refresh_token);
    assert.notEqual(second.refresh_token, first.refresh_token);
    assert.equal((await whoami(server.mcp_url, second.access_token)).subject, "alice");

    const revocation = await oauth.revocationRequest(
      as,
      client,
      oauth.None(),
      second.refresh_token,
      insecure,
    );
    await oauth.processRevocationResponse(revocation);
    await assert.rejects(refresh(as, client, second.refresh_token), { error: "invalid_grant" });
    const { counts } = await server.stats();
    assert.equal(counts["token:refresh_token"], 2);
    assert.equal(counts["token:authorization_code"], 1);
    assert.equal(counts.registration, 1);
    assert.equal(counts.authorization, 1);
  },
};

export const reuse_of_a_refresh_token_ends_the_login = {
  async run(server) {
    const { as } = await discover(server.mcp_url);
    const client = server.clients.public;
    const first = await logIn(as, client, { resource: server.mcp_url, scope: "read" });
    const second = await refresh(as, client, first.refresh_token);
    await assert.rejects(refresh(as, client, first.refresh_token), { error: "invalid_grant" });
    await assert.rejects(refresh(as, client, second.refresh_token), { error: "invalid_grant" });
    assert.equal((await whoami(server.mcp_url, second.access_token)).status, 401);
    assert.equal((await server.stats()).refresh_token_reuses, 1);
  },
};

export const concurrent_use_of_a_refresh_token_is_reuse = {
  async run(server) {
    const { as } = await discover(server.mcp_url);
    const client = server.clients.public;
    const options = { resource: server.mcp_url, scope: "read" };
    const { refresh_token: token } = await logIn(as, client, options);
    const attempts = [1, 2].map(() => refresh(as, client, token));
    const outcomes = (await Promise.allSettled(attempts)).map(({ status }) => status);
    assert.deepEqual(outcomes.sort(), ["fulfilled", "rejected"]);
    assert.equal((await server.stats()).refresh_token_reuses, 1);
  },
};

export const a_tool_needs_another_scope = {
  async run(server) {
    const { as } = await discover(server.mcp_url);
    const options = { resource: server.mcp_url, scope: "read" };
    const { access_token: narrow } = await logIn(as, server.clients.public, options);
    const call = { name: "write", arguments: { text: "a" } };
    const refused = await request(server.mcp_url, "tools/call", call, narrow);
    assert.equal(refused.status, 403);
    assert.match(
      refused.challenge,
      /^Bearer error="insufficient_scope", scope="write", resource_m/,
    );
    const wider = { ...options, scope: "read write" };
    const { access_token: wide } = await logIn(as, server.clients.public, wider);
    const { result } = await request(server.mcp_url, "tools/call", call, wide);
    assert.equal(result.content[0].text, "wrote a");
  },
};

export const confidential_client = {
  async run(server) {
    const { as } = await discover(server.mcp_url);
    const { client_secret: secret, ...client } = server.clients.confidential;
    const authentication = oauth.ClientSecretBasic(secret);
    const options = { resource: server.mcp_url, scope: "read", authentication };
    const tokens = await logIn(as, client, options);
    assert.ok((await refresh(as, client, tokens.refresh_token, authentication)).access_token);
  },
};

export const device_flow = {
  async run(server) {
    const { as } = await discover(server.mcp_url);
    const client = server.clients.public;
    const begin = async () => {
      const parameters = { resource: server.mcp_url, scope: "read" };
      const response = await oauth.deviceAuthorizationRequest(
        as,
        client,
        oauth.None(),
        parameters,
        insecure,
      );
      return oauth.processDeviceAuthorizationResponse(as, client, response);
    };
    const poll = async ({ device_code: code }) => {
      const response = await oauth.deviceCodeGrantRequest(as, client, oauth.None(), code, {
        additionalParameters: { resource: server.mcp_url },
        ...insecure,
      });
      return oauth.processDeviceCodeResponse(as, client, response);
    };
    const approved = await begin();
    assert.equal(approved.interval, 1);
    await assert.rejects(poll(approved), { error: "authorization_pending" });
    await server.control("/device", { user_code: approved.user_code });
    const tokens = await poll(approved);
    assert.equal((await whoami(server.mcp_url, tokens.access_token)).subject, "alice");
    assert.ok((await refresh(as, client, tokens.refresh_token)).access_token);

    const denied = await begin();
    await server.control("/device", { answer: "deny" });
    await assert.rejects(poll(denied), { error: "access_denied" });
  },
};

export const client_credentials = {
  async run(server) {
    const { as } = await discover(server.mcp_url);
    const { confidential, post, key } = server.clients;
    const pem = createPrivateKey(key.private_key_pem);
    const der = pem.export({ format: "der", type: "pkcs8" });
    const algorithm = { name: "ECDSA", namedCurve: "P-256" };
    const signing = await crypto.subtle.importKey("pkcs8", der, algorithm, false, ["sign"]);
    for (const [client, authentication] of [
      [confidential, oauth.ClientSecretBasic(confidential.client_secret)],
      [post, oauth.ClientSecretPost(post.client_secret)],
      [key, oauth.PrivateKeyJwt({ key: signing, kid: "key" })],
    ]) {
      const { client_id } = client;
      const parameters = { resource: server.mcp_url, scope: "read" };
      const tokens = await clientCredentials(as, { client_id }, authentication, parameters);
      const identity = await whoami(server.mcp_url, tokens.access_token);
      assert.equal(identity.client_id, client_id);
    }
  },
};

async function boundTokens(server) {
  const { as } = await discover(server.mcp_url);
  const client = server.clients.public;
  const keys = await oauth.generateKeyPair("ES256");
  const DPoP = oauth.DPoP(client, keys);
  const tokens = await logIn(as, client, { resource: server.mcp_url, scope: "read", DPoP });
  assert.equal(tokens.token_type, "dpop");
  const body = JSON.stringify({
    jsonrpc: "2.0",
    id: 1,
    method: "tools/call",
    params: { name: "whoami" },
  });
  const headers = new Headers({
    "content-type": "application/json",
    accept: "application/json, text/event-stream",
  });
  const url = new URL(server.mcp_url);
  const send = () =>
    oauth.protectedResourceRequest(tokens.access_token, "POST", url, headers, body, {
      DPoP,
      ...insecure,
    });
  const { result } = await retryWithNonce(send, answerOf);
  assert.equal(JSON.parse(result.content[0].text).subject, "alice");
  // A bound token is no bearer token.
  assert.equal((await whoami(server.mcp_url, tokens.access_token)).status, 401);
}

export const dpop = { flags: ["--dpop", "required"], run: boundTokens };
export const dpop_with_nonces = { flags: ["--dpop", "nonce"], run: boundTokens };
export const dpop_on_request = { flags: ["--dpop", "offered"], run: boundTokens };

export const client_metadata_document = {
  flags: ["--client-metadata-documents"],
  async run(server) {
    const { as } = await discover(server.mcp_url);
    assert.equal(as.client_id_metadata_document_supported, true);
    const client = server.clients.metadata_document;
    const tokens = await logIn(as, client, { resource: server.mcp_url, scope: "read" });
    const identity = await whoami(server.mcp_url, tokens.access_token);
    assert.equal(identity.client_id, client.client_id);
  },
};

export const the_sdk_logs_in = { run: (server) => sdkFlow(server, "legacy") };
export const the_sdk_logs_in_to_the_modern_server = { run: (server) => sdkFlow(server, "modern") };
export const the_sdk_finds_another_port = {
  flags: ["--separate-authorization-server"],
  async run(server) {
    assert.notEqual(new URL(server.issuer).port, new URL(server.mcp_url).port);
    await sdkFlow(server, "auto");
  },
};
