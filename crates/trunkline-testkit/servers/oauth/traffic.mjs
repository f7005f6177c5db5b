// Records requests, and lets some of them fail.

import { RESOURCE_METADATA_PATH } from "./resource.mjs";
import { ROUTES } from "./provider.mjs";

const ENDPOINTS = new Map([
  ["/mcp", "mcp"],
  [RESOURCE_METADATA_PATH, "resource_metadata"],
  ["/.well-known/oauth-protected-resource", "resource_metadata"],
  ["/.well-known/oauth-authorization-server", "metadata"],
  ["/.well-known/openid-configuration", "metadata"],
  ["/stolen", "stolen"],
  ...Object.entries(ROUTES).map(([name, path]) => [path, name]),
]);

/** The name of the endpoint at a path, as in statistics and faults. */
export const endpointAt = (path) => ENDPOINTS.get(path) ?? "other";

let requests = [];
let faults = [];
let reuses = 0;

/** Records a request. Its status is filled in when it ends; 0 means that it got no response. */
export function record({ server, endpoint, method, path, grantType }, response) {
  const entry = { server, endpoint, method, path, grant_type: grantType ?? null, status: null };
  requests.push(entry);
  response.on("finish", () => (entry.status ??= response.statusCode));
  response.on("close", () => (entry.status ??= 0));
  return entry;
}

/** Counts refreshes with a token that was used before. */
export function recordReuse() {
  reuses += 1;
}

/** All requests, and their number per endpoint and per `token:GRANT_TYPE`. */
export function statistics() {
  const counts = {};
  for (const { endpoint, grant_type: grantType } of requests) {
    counts[endpoint] = (counts[endpoint] ?? 0) + 1;
    if (grantType)
      counts[`${endpoint}:${grantType}`] = (counts[`${endpoint}:${grantType}`] ?? 0) + 1;
  }
  return { counts, refresh_token_reuses: reuses, requests };
}

/**
 * Lets the next `times` requests of an endpoint, or of `any`, fail. `kind` is `status` (with
 * `status`, and optionally `error` and `retry_after`), `slow` (answers after `seconds`), `close` (no
 * answer) or `lose` (performs the request, but loses the answer).
 */
export function addFault({
  endpoint = "token",
  grant_type: grantType,
  kind,
  times = 1,
  ...details
}) {
  if (!["status", "slow", "close", "lose"].includes(kind)) throw new Error(`unknown fault ${kind}`);
  faults.push({ endpoint, grantType, kind, times, ...details });
}

export function resetTraffic() {
  requests = [];
  faults = [];
  reuses = 0;
}

/** Applies a fault to a request; returns whether the request is answered by that. */
export async function fail({ endpoint, grantType }, response) {
  const concerns = (fault) =>
    ["any", endpoint].includes(fault.endpoint) &&
    (!fault.grantType || fault.grantType === grantType);
  const fault = faults.find(concerns);
  if (!fault) return false;
  fault.times -= 1;
  if (fault.times <= 0) faults = faults.filter((each) => each !== fault);
  return KINDS[fault.kind](fault, response);
}

const KINDS = {
  status({ status = 500, error = "server_error", retry_after: retryAfter }, response) {
    const headers = { "content-type": "application/json" };
    if (retryAfter !== undefined) headers["retry-after"] = String(retryAfter);
    response.writeHead(status, headers).end(JSON.stringify({ error }));
    return true;
  },
  async slow({ seconds = 5 }) {
    await new Promise((resolve) => setTimeout(resolve, seconds * 1000));
    return false;
  },
  close(_fault, response) {
    response.destroy();
    return true;
  },
  lose(_fault, response) {
    response.writeHead = () => response;
    response.write = () => true;
    response.end = () => response.destroy();
    return false;
  },
};
