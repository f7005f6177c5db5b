// Checks DPoP proofs (RFC 9449) at the MCP server.

import { createHash, randomUUID } from "node:crypto";
import { jose } from "./packages.mjs";

const MAX_PROOF_AGE_SECONDS = 300;

const seen = new Set();

/** The nonce that proofs have to carry, where nonces are required. */
export let nonce = randomUUID();

export function changeNonce() {
  nonce = randomUUID();
}

/** Returns the reason to refuse a request, or nothing. */
export async function refusal({ proof, token, boundTo, method, url, needsNonce }) {
  if (!proof) return "invalid_dpop_proof";
  try {
    const options = { typ: "dpop+jwt", algorithms: ["ES256", "EdDSA", "Ed25519"] };
    const { payload, protectedHeader } = await jose.jwtVerify(proof, jose.EmbeddedJWK, options);
    const isFresh = Math.abs(Date.now() / 1000 - payload.iat) <= MAX_PROOF_AGE_SECONDS;
    const hash = createHash("sha256").update(token).digest("base64url");
    const key = await jose.calculateJwkThumbprint(protectedHeader.jwk);
    const isRight = payload.htm === method && payload.htu === url && payload.ath === hash;
    if (!isRight || !isFresh || key !== boundTo || !payload.jti || seen.has(payload.jti)) {
      return "invalid_dpop_proof";
    }
    seen.add(payload.jti);
    return needsNonce && payload.nonce !== nonce ? "use_dpop_nonce" : undefined;
  } catch {
    return "invalid_dpop_proof";
  }
}
