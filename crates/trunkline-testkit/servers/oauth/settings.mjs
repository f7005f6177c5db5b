// Command-line flags, and the settings that the control API can change.

import { parseArgs } from "node:util";
import { MISBEHAVIOURS } from "./misbehaviour.mjs";

const { values: flags } = parseArgs({
  options: {
    // Seconds.
    "access-token-lifetime": { type: "string", default: "3600" },
    "refresh-token-lifetime": { type: "string", default: "86400" },
    "device-code-lifetime": { type: "string", default: "600" },
    // The polling interval that device authorization responses state, in seconds.
    "device-interval": { type: "string", default: "1" },
    // `off`; `offered` for tokens bound on request; `required` for bound tokens only; `nonce` to
    // require nonces too.
    dpop: { type: "string", default: "off" },
    "no-registration": { type: "boolean", default: false },
    "no-device-flow": { type: "boolean", default: false },
    "no-refresh-tokens": { type: "boolean", default: false },
    "no-rotation": { type: "boolean", default: false },
    "client-metadata-documents": { type: "boolean", default: false },
    // The authorization server on another port than the MCP server.
    "separate-authorization-server": { type: "boolean", default: false },
    // One of the names in misbehaviour.mjs; may be repeated.
    misbehave: { type: "string", multiple: true, default: [] },
  },
});

if (!["off", "offered", "required", "nonce"].includes(flags.dpop)) {
  throw new Error(`unknown DPoP mode ${flags.dpop}; use off, offered, required or nonce`);
}

/** What does not change while the server runs. */
export const features = {
  dpop: flags.dpop,
  registration: !flags["no-registration"],
  deviceFlow: !flags["no-device-flow"],
  clientMetadataDocuments: flags["client-metadata-documents"],
  separateAuthorizationServer: flags["separate-authorization-server"],
};

const initial = {
  access_token_lifetime: Number(flags["access-token-lifetime"]),
  refresh_token_lifetime: Number(flags["refresh-token-lifetime"]),
  device_code_lifetime: Number(flags["device-code-lifetime"]),
  device_interval: Number(flags["device-interval"]),
  refresh_tokens: !flags["no-refresh-tokens"],
  rotation: !flags["no-rotation"],
  // Replaces `expires_in` of token responses; `omit` leaves it out.
  stated_lifetime: null,
  // `approve` or `deny`: what the user answers.
  user: "approve",
  misbehaviours: flags.misbehave,
};

/** What the control API can change. */
export const settings = {};

export function changeSettings(changes) {
  for (const [name, value] of Object.entries(changes)) {
    if (!(name in initial)) throw unknown("setting", name, initial);
    settings[name] = value;
  }
  for (const name of settings.misbehaviours) {
    if (!(name in MISBEHAVIOURS)) throw unknown("misbehaviour", name, MISBEHAVIOURS);
  }
}

function unknown(what, name, known) {
  return new Error(`unknown ${what} ${name}; use one of ${Object.keys(known).join(", ")}`);
}

/** The changes to answers that are in effect. */
export function misbehaviours() {
  return settings.misbehaviours.map((name) => MISBEHAVIOURS[name]);
}

export function resetSettings() {
  changeSettings(initial);
}

resetSettings();
