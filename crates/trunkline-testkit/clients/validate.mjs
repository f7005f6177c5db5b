// Says whether a document is valid against a JSON Schema, with ajv in its strict mode.
//
//   node validate.mjs SCHEMA DOCUMENT

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const require = createRequire(import.meta.url);
const { Ajv2020 } = require("ajv/dist/2020.js");

const [schema, document] = process.argv.slice(2).map((path) => JSON.parse(readFileSync(path)));
const validator = new Ajv2020({ strict: true, allowUnionTypes: true, strictRequired: false });
console.log(validator.validate(schema, document) ? "valid" : "invalid");
