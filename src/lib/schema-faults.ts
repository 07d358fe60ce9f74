// What is wrong with a value, in sentences for the model that wrote it.

import type { ErrorObject } from "ajv/dist/2020.js";

const MAX_SHOWN = 60;
const MAX_VALUES = 20;

export function schemaFault({ keyword, params, instancePath, message }: ErrorObject): string {
  const place = placeOf(instancePath);
  const wording = WORDINGS[keyword]?.(params) ?? (message === undefined ? "is wrong" : shown(message));
  return `${place === "" ? "It" : `\`${place}\``} ${wording}.`;
}

type Params = Readonly<Record<string, unknown>>;

const WORDINGS: Readonly<Record<string, (params: Params) => string>> = {
  required: ({ missingProperty }) => `has no \`${shown(missingProperty)}\``,
  dependentRequired: ({ property, missingProperty }) =>
    `has \`${shown(property)}\`, and so needs \`${shown(missingProperty)}\``,
  type: ({ type }) => `must be ${[type].flat().map(shown).join(" or ")}`,
  enum: ({ allowedValues }) => `must be one of ${listed(allowedValues)}`,
  const: ({ allowedValue }) => `must be ${written(allowedValue)}`,
  additionalProperties: ({ additionalProperty }) => `has an unknown key \`${shown(additionalProperty)}\``,
  uniqueItems: ({ i, j }) => `must not hold the same twice, as at ${i} and ${j}`,
  unevaluatedProperties: ({ unevaluatedProperty }) => `has an unknown key \`${shown(unevaluatedProperty)}\``,
};

/** `items[0].name` */
function placeOf(pointer: string): string {
  const steps = pointer
    .split("/")
    .slice(1)
    .map((step) => step.replaceAll("~1", "/").replaceAll("~0", "~"));
  const place = steps.map((step, depth) =>
    /^\d+$/.test(step) ? `[${step}]` : `${depth > 0 ? "." : ""}${step}`,
  );
  return shown(place.join(""));
}

function listed(values: unknown): string {
  const all: readonly unknown[] = Array.isArray(values) ? values : [];
  return all.slice(0, MAX_VALUES).map(written).join(", ") + (all.length > MAX_VALUES ? ", …" : "");
}

const written = (value: unknown) => `\`${shown(JSON.stringify(value))}\``;

function shown(value: unknown): string {
  const text = String(value).replace(/\s+/g, " ");
  return text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}…` : text;
}
