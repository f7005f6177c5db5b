// The clients that need no registration.

import { jose } from "./packages.mjs";

/** Redirect addresses of native clients; the port of a loopback address is free. */
const HOSTS = ["127.0.0.1", "localhost", "[::1]"];
const PATHS = ["/", "/callback", "/oauth/callback"];
const REDIRECTS = HOSTS.flatMap((host) => PATHS.map((path) => `http://${host}${path}`));

const DEVICE = "urn:ietf:params:oauth:grant-type:device_code";

const { privateKey, publicKey } = await jose.generateKeyPair("ES256", { extractable: true });

/** What a test has to know about the clients. */
export const credentials = {
  public: { client_id: "public-client" },
  confidential: { client_id: "confidential-client", client_secret: "confidential-secret" },
  post: { client_id: "post-client", client_secret: "post-secret" },
  key: {
    client_id: "key-client",
    private_key_pem: await jose.exportPKCS8(privateKey),
    signing_algorithm: "ES256",
  },
  metadata_document: { client_id: "https://client.example.com/metadata.json" },
};

/** The clients of the configuration. `device` says whether the device flow is offered. */
export function registered(device) {
  const interactive = ["authorization_code", "refresh_token", ...(device ? [DEVICE] : [])];
  const native = {
    application_type: "native",
    redirect_uris: REDIRECTS,
    response_types: ["code"],
  };
  const { public: open, confidential, post, key } = credentials;
  return [
    { ...open, ...native, grant_types: interactive, token_endpoint_auth_method: "none" },
    {
      ...confidential,
      ...native,
      grant_types: [...interactive, "client_credentials"],
      token_endpoint_auth_method: "client_secret_basic",
    },
    {
      ...post,
      ...native,
      grant_types: [...interactive, "client_credentials"],
      token_endpoint_auth_method: "client_secret_post",
    },
    {
      client_id: key.client_id,
      grant_types: ["client_credentials"],
      redirect_uris: [],
      response_types: [],
      token_endpoint_auth_method: "private_key_jwt",
      token_endpoint_auth_signing_alg: "ES256",
      jwks: { keys: [publicJwk] },
    },
  ];
}

const publicJwk = { ...(await jose.exportJWK(publicKey)), alg: "ES256", use: "sig", kid: "key" };

/** The client metadata documents, by their address. The control API can add some. */
export const documents = new Map();

const { client_id } = credentials.metadata_document;
documents.set(client_id, {
  client_id,
  client_name: "A client with a metadata document",
  application_type: "native",
  redirect_uris: REDIRECTS,
  response_types: ["code"],
  grant_types: ["authorization_code", "refresh_token"],
  token_endpoint_auth_method: "none",
});

/** Serves the metadata documents, which have `https` addresses, without a network. */
export async function fetchDocument(url) {
  const document = documents.get(String(url));
  if (!document) return new Response("", { status: 404 });
  return Response.json(document);
}
