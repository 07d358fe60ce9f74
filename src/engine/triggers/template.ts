// Templates with `{{path}}` placeholders, which are filled in with values from a delivery. A path can only name a
// value; nothing in a template is executed.

import { firstChars } from "../../lib/text.ts";

/** The values that paths can name. */
export interface DeliveryValues {
  /** The parsed body. */
  readonly body: unknown;
  /** Headers by lowercase name, without credentials. */
  readonly headers: Readonly<Record<string, string>>;
  readonly delivery: { readonly id: string };
}

/** The maximum length of a filled-in text, in characters. Longer texts are cut off. */
export const MAX_FILLED = 262_144;
const MAX_SEGMENTS = 16;

const PLACE = /\{\{([^{}]*)\}\}/g;
const PATH = /^(?:body|headers|delivery)(?:\.[\w-]{1,128})*$/;
const HINT = "such as `body.issue.title`, `headers.x-github-event` or `delivery.id`";

/** Returns the reason why `path` is invalid, or undefined if it is valid. */
export function pathFault(path: string): string | undefined {
  if (PATH.test(path) && path.split(".").length <= MAX_SEGMENTS) return undefined;
  return `\`${firstChars(path, 64)}\` must be a path ${HINT}, with at most ${MAX_SEGMENTS} parts`;
}

/** Returns the reason why `template` cannot be filled in, or undefined if it can. */
export function templateFault(template: string): string | undefined {
  for (const [, path = ""] of template.matchAll(PLACE)) {
    const fault = pathFault(path.trim());
    if (fault) return fault;
  }
  const rest = template.replace(PLACE, "");
  return rest.includes("{{") || rest.includes("}}")
    ? `\`{{\` and \`}}\` must enclose a path ${HINT}`
    : undefined;
}

/** Returns the value at `path`, or undefined if the path does not exist. Ignores inherited properties. */
export function valueAt(values: DeliveryValues, path: string): unknown {
  let value: unknown = values;
  for (const segment of path.split(".")) {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, segment)) return undefined;
    value = (value as Readonly<Record<string, unknown>>)[segment];
  }
  return value;
}

/**
 * Fills in the template, up to `MAX_FILLED` characters. A missing value becomes an empty text; objects and lists become
 * JSON.
 */
export function filled(template: string, values: DeliveryValues): string {
  let text = "";
  let end = 0;
  for (const { 0: place, 1: path = "", index } of template.matchAll(PLACE)) {
    text += template.slice(end, index) + textOf(valueAt(values, path.trim()));
    end = index + place.length;
    // One value can be as long as a body, and a template can name it many times.
    if (text.length > MAX_FILLED) return firstChars(text, MAX_FILLED);
  }
  return firstChars(text + template.slice(end), MAX_FILLED);
}

function textOf(value: unknown): string {
  if (value === undefined || value === null) return "";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}
