// The control API: lets a test change the server and look at what happened.

import { documents } from "./clients.mjs";
import { setClockOffset } from "./clock.mjs";
import { changeNonce } from "./dpop.mjs";
import { ACCOUNT, createGrant } from "./provider.mjs";
import { changeSettings, resetSettings, settings } from "./settings.mjs";
import { addFault, resetTraffic, statistics } from "./traffic.mjs";

/** Answers a request below `/control`. `servers` are the authorization server and its successor. */
export async function control(servers, { method, path, body }) {
  const action = ACTIONS[`${method} ${path.slice("/control".length)}`];
  if (!action) throw new Error(`unknown control call ${method} ${path}`);
  return (await action(servers, body ? JSON.parse(body) : {})) ?? {};
}

const ACTIONS = {
  "GET /stats": () => statistics(),
  "GET /settings": () => settings,
  "POST /settings": (_servers, changes) => changeSettings(changes),
  "POST /faults": (_servers, fault) => addFault(fault),
  "POST /clock": (_servers, { offset_seconds: seconds }) => setClockOffset(seconds),
  "POST /nonce": () => changeNonce(),
  "POST /client-metadata": (_servers, document) => {
    documents.set(document.client_id, document);
  },
  "POST /revoke": (servers, { tokens = "access" }) => {
    const models = tokens === "refresh" ? ["RefreshToken"] : ["AccessToken", "ClientCredentials"];
    servers.current.storage.clear(...models);
    if (tokens === "all") servers.current.storage.clear("RefreshToken", "Grant");
  },
  "POST /rotate": (servers) => servers.current.storage.consumeRefreshTokens(),
  "POST /forget-clients": (servers) => servers.current.storage.clear("Client"),
  "POST /migrate": async (servers) => ({ issuer: await servers.migrate() }),
  "POST /device": (servers, answer) => answerDevice(servers.current, answer),
  "POST /reset": (servers) => {
    resetSettings();
    resetTraffic();
    setClockOffset(0);
    servers.reset();
  },
};

/** Approves or denies the device code with a user code, or all that are pending. */
async function answerDevice({ provider, storage }, { user_code: userCode, answer = "approve" }) {
  const isMeant = (payload) =>
    userCode ? payload.userCode === normalized(userCode) : !payload.accountId && !payload.error;
  const pending = [...storage.adapter("DeviceCode").entries.values()].filter(isMeant);
  if (userCode && pending.length === 0) throw new Error(`no device code for ${userCode}`);
  for (const { jti } of pending) {
    const code = await provider.DeviceCode.find(jti);
    if (answer === "deny") code.error = "access_denied";
    else await approve(provider, code);
    await code.save();
  }
  return { answered: pending.length };
}

async function approve(provider, code) {
  const { scope, resource } = code.params;
  const grant = await createGrant(provider, code.clientId, { scope, resource });
  const authTime = Math.floor(Date.now() / 1000);
  Object.assign(code, { accountId: ACCOUNT, grantId: grant.jti, scope, resource, authTime });
}

function normalized(userCode) {
  return userCode.replace(/[^a-z0-9]/gi, "").toUpperCase();
}
