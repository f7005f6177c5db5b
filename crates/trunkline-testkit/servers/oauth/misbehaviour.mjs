// What a broken or hostile server answers: changes to the answers of the real one.

const LINK_LOCAL = "http://169.254.169.254/latest/meta-data";
const FILE = "file:///etc/passwd";
const METADATA_BYTES = 10 * 1024 * 1024;
const METADATA_DELAY_SECONDS = 120;

/** All endpoints of authorization server metadata at one address. */
const endpointsAt = (address) => ({
  authorization_endpoint: address,
  token_endpoint: address,
  registration_endpoint: address,
  revocation_endpoint: address,
  device_authorization_endpoint: address,
});

/**
 * By name: `metadata` and `resourceMetadata` are merged into the documents (undefined removes a
 * member), `challenge` replaces `resource_metadata` of the challenge, `responseParameters` are
 * merged into the authorization response, and `answer` replaces the answer of an endpoint.
 */
export const MISBEHAVIOURS = {
  "no-pkce": { metadata: { code_challenge_methods_supported: undefined } },
  "plain-pkce": { metadata: { code_challenge_methods_supported: ["plain"] } },
  "wrong-issuer": { metadata: { issuer: "https://attacker.example.com" } },
  "no-issuer": { metadata: { issuer: undefined } },
  "missing-iss": { responseParameters: { iss: undefined } },
  "wrong-iss": { responseParameters: { iss: "https://attacker.example.com" } },
  "unadvertised-wrong-iss": {
    metadata: { authorization_response_iss_parameter_supported: undefined },
    responseParameters: { iss: "https://attacker.example.com" },
  },
  "wrong-state": { responseParameters: { state: "attacker" } },
  "resource-mismatch": { resourceMetadata: { resource: "https://attacker.example.com/mcp" } },
  "link-local-endpoints": { metadata: endpointsAt(LINK_LOCAL) },
  "file-endpoints": { metadata: endpointsAt(FILE) },
  "link-local-authorization-server": { resourceMetadata: { authorization_servers: [LINK_LOCAL] } },
  "file-authorization-server": { resourceMetadata: { authorization_servers: [FILE] } },
  "link-local-resource-metadata": { challenge: LINK_LOCAL },
  "file-resource-metadata": { challenge: FILE },
  "no-challenge-metadata": { challenge: null },
  "metadata-redirect": { answer: { metadata: redirect(302, "/moved/metadata") } },
  "metadata-redirect-link-local": { answer: { metadata: redirect(302, LINK_LOCAL) } },
  "resource-metadata-redirect-link-local": {
    answer: { resource_metadata: redirect(302, LINK_LOCAL) },
  },
  "token-redirect": { answer: { token: redirect(307, "/stolen") } },
  "huge-metadata": { answer: { metadata: huge } },
  "huge-resource-metadata": { answer: { resource_metadata: huge } },
  "slow-metadata": { answer: { metadata: slow } },
  "slow-resource-metadata": { answer: { resource_metadata: slow } },
  "html-metadata": { answer: { metadata: html } },
};

function redirect(status, location) {
  return (response) => response.writeHead(status, { location }).end();
}

function huge(response) {
  response.writeHead(200, { "content-type": "application/json" });
  response.end(JSON.stringify({ issuer: "x".repeat(METADATA_BYTES) }));
}

function slow(response) {
  response.writeHead(200, { "content-type": "application/json" });
  response.write("{");
  const timer = setTimeout(() => response.end("}"), METADATA_DELAY_SECONDS * 1000);
  response.on("close", () => clearTimeout(timer));
}

function html(response) {
  response.writeHead(200, { "content-type": "text/html" }).end("<h1>Welcome</h1>");
}

/** The document with the changes of all misbehaviours. */
export function changed(document, misbehaviours, part) {
  return Object.assign({}, document, ...misbehaviours.map((each) => each[part]));
}

/** The answer that replaces the one of an endpoint, if any. */
export function replacement(misbehaviours, endpoint) {
  return misbehaviours.map((each) => each.answer?.[endpoint]).find(Boolean);
}
