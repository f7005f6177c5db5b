// The authorization server: oidc-provider, with a user who answers at once.

import { randomBytes } from "node:crypto";
import { fetchDocument, registered } from "./clients.mjs";
import { changed } from "./misbehaviour.mjs";
import { Provider, errors, interactionPolicy } from "./packages.mjs";
import { features, misbehaviours, settings } from "./settings.mjs";
import { Storage } from "./storage.mjs";

export const ACCOUNT = "alice";
export const RESOURCE_SCOPES = "read write";

const SESSION_SECONDS = 3600;

export const ROUTES = {
  authorization: "/authorize",
  token: "/token",
  registration: "/register",
  revocation: "/revoke",
  device_authorization: "/device_authorization",
  code_verification: "/device",
  jwks: "/jwks",
};

/** An authorization server for `resource`, with its storage. */
export function createAuthorizationServer(issuer, resource) {
  const storage = new Storage();
  const provider = new Provider(issuer, configuration(storage, resource));
  provider.use(changeResponses);
  const handle = provider.callback();
  let lastTokenRequest = Promise.resolve();
  return {
    issuer,
    provider,
    storage,
    async handle(request, response, path) {
      if (path === ROUTES.authorization) await logIn(provider, request);
      if (path !== ROUTES.token) return handle(request, response);
      // One after another: of two that use a refresh token at once, one is always a reuse.
      const answered = lastTokenRequest.then(() => handle(request, response));
      lastTokenRequest = answered.catch(() => {});
      return answered;
    },
  };
}

function configuration(storage, resource) {
  return {
    adapter: (model) => storage.adapter(model),
    clients: registered(features.deviceFlow),
    clientDefaults: { token_endpoint_auth_method: "none" },
    clockTolerance: 0,
    // Unsigned cookies, because `logIn` writes one.
    cookies: { keys: [] },
    expiresWithSession: async () => false,
    features: {
      devInteractions: { enabled: false },
      clientCredentials: { enabled: true },
      clientIdMetadataDocument: { enabled: features.clientMetadataDocuments, ack: "draft-02" },
      deviceFlow: { enabled: features.deviceFlow },
      dPoP: {
        enabled: features.dpop !== "off",
        nonceSecret: randomBytes(32),
        requireNonce: () => features.dpop === "nonce",
      },
      registration: { enabled: features.registration },
      resourceIndicators: {
        enabled: true,
        defaultResource: async (_context, _client, granted) => granted ?? resource,
        useGrantedResource: async () => true,
        getResourceServerInfo: async (_context, identifier) => {
          if (identifier !== resource) throw new errors.InvalidTarget();
          return { scope: RESOURCE_SCOPES, accessTokenFormat: "opaque" };
        },
      },
      revocation: { enabled: true },
      rpInitiatedLogout: { enabled: false },
    },
    fetch: fetchDocument,
    findAccount: async (_context, id) => ({ accountId: id, claims: async () => ({ sub: id }) }),
    interactions: { policy: policy() },
    issueRefreshToken: async (_context, client) =>
      settings.refresh_tokens && client.grantTypeAllowed("refresh_token"),
    loadExistingGrant: (context) =>
      createGrant(context.oidc.provider, context.oidc.client.clientId, {
        scope: [...context.oidc.requestParamScopes].join(" "),
        resource,
      }),
    pkce: { required: () => true },
    rotateRefreshToken: () => settings.rotation,
    routes: ROUTES,
    scopes: ["openid", "offline_access", ...RESOURCE_SCOPES.split(" ")],
    ttl: {
      AccessToken: () => settings.access_token_lifetime,
      ClientCredentials: () => settings.access_token_lifetime,
      DeviceCode: () => settings.device_code_lifetime,
      RefreshToken: () => settings.refresh_token_lifetime,
      Session: SESSION_SECONDS,
      Grant: 10 * 86400,
    },
  };
}

/** Never asks the user, even when a client wants that; the settings say what the user answers. */
function policy() {
  const { Check, Prompt } = interactionPolicy;
  const answer = new Check("user", "the user denies", "access_denied", () => {
    if (settings.user === "deny") throw new errors.AccessDenied("the user denied the request");
    return Check.NO_NEED_TO_PROMPT;
  });
  const consent = new Prompt({ name: "consent", requestable: true }, answer);
  const login = new Prompt({ name: "login", requestable: true });
  consent.checks.remove("consent_prompt");
  login.checks.remove("login_prompt");
  return [login, consent];
}

/** Grants what a client asks for. */
export async function createGrant(provider, clientId, { scope, resource }) {
  const grant = new provider.Grant({ accountId: ACCOUNT, clientId });
  const scopes = (scope ?? "").split(" ").filter(Boolean);
  const isForResource = (name) => RESOURCE_SCOPES.split(" ").includes(name);
  grant.addOIDCScope(scopes.filter((name) => !isForResource(name)).join(" "));
  grant.addResourceScope(resource, scopes.filter(isForResource).join(" "));
  await grant.save();
  return grant;
}

/** Gives an authorization request the session of a user who has logged in. */
async function logIn(provider, request) {
  const session = new provider.Session({
    accountId: ACCOUNT,
    loginTs: Math.floor(Date.now() / 1000),
  });
  await session.save(SESSION_SECONDS);
  request.headers.cookie = `${provider.cookieName("session")}=${session.jti}`;
}

/** Applies misbehaviours, and settings that oidc-provider does not have. */
async function changeResponses(context, next) {
  await next();
  const route = context.oidc?.route;
  if (route === "discovery") {
    context.body = changed(context.body, misbehaviours(), "metadata");
  } else if (route === "device_authorization" && context.status === 200) {
    context.body.interval = settings.device_interval;
  } else if (route === "token" && context.status === 200 && settings.stated_lifetime !== null) {
    const omitted = settings.stated_lifetime === "omit";
    context.body.expires_in = omitted ? undefined : settings.stated_lifetime;
  } else if (route === "authorization") {
    const location = context.response.get("location");
    if (location) context.set("location", changedLocation(location));
  }
}

function changedLocation(location) {
  const url = new URL(location);
  const parameters = changed({}, misbehaviours(), "responseParameters");
  for (const [name, value] of Object.entries(parameters)) {
    if (value === undefined) url.searchParams.delete(name);
    else url.searchParams.set(name, value);
  }
  return url.href;
}
