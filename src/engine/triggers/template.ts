// Texts with `{{path}}` in them, which a delivery fills in. A path only names a value; nothing in a template is executed.

import { firstChars } from "../../lib/text.ts";

/** What a path begins with. */
export interface Delivered {
  /** The parsed body. */
  readonly body: unknown;
  /** By names in lower case, without credentials. */
  readonly headers: Readonly<Record<string, string>>;
  readonly delivery: { readonly id: string };
}

/** Maximum length of a filled-in text, in characters. What is longer is cut. */
export const MAX_FILLED = 262_144;
const MAX_SEGMENTS = 16;

const PLACE = /\{\{([^{}]*)\}\}/g;
const PATH = /^(?:body|headers|delivery)(?:\.[\w-]{1,128})*$/;
const HINT = "such as `body.issue.title`, `headers.x-github-event` or `delivery.id`";

/** The reason why `path` names nothing of a delivery; undefined when it is right. */
export function pathFault(path: string): string | undefined {
  if (PATH.test(path) && path.split(".").length <= MAX_SEGMENTS) return undefined;
  return `\`${firstChars(path, 64)}\` must be a path ${HINT}, with at most ${MAX_SEGMENTS} parts`;
}

/** The reason why `template` cannot be filled in; undefined when it can. */
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

/** The value at `path`; undefined when there is none. Inherited properties are none. */
export function valueAt(delivered: Delivered, path: string): unknown {
  let value: unknown = delivered;
  for (const segment of path.split(".")) {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, segment)) return undefined;
    value = (value as Readonly<Record<string, unknown>>)[segment];
  }
  return value;
}

/** A missing value becomes an empty text, an object or a list JSON. At most `MAX_FILLED` characters. */
export function filled(template: string, delivered: Delivered): string {
  let text = "";
  let end = 0;
  for (const { 0: place, 1: path = "", index } of template.matchAll(PLACE)) {
    text += template.slice(end, index) + textOf(valueAt(delivered, path.trim()));
    end = index + place.length;
    // One value may be as long as a body, and a template may name it many times.
    if (text.length > MAX_FILLED) return firstChars(text, MAX_FILLED);
  }
  return firstChars(text + template.slice(end), MAX_FILLED);
}

function textOf(value: unknown): string {
  if (value === undefined || value === null) return "";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}
