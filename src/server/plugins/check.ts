// Checks the default export of a plugin's module and returns each fault with its path. Does not copy the parts.

import { zodFault } from "../../agent/core/tool.ts";
import type { Fault } from "../../lib/check.ts";
import { didYouMean } from "../../lib/did-you-mean.ts";
import { isObject } from "../../lib/json.ts";
import type { Plugin } from "./definition.ts";

type Path = Fault["path"];
/** Returns the faults of `value`, which is at `path`. */
type Check = (value: unknown, path: Path) => Fault[];

/** Returns the plugins of a module's default export, or all faults. */
export function pluginsOf(
  module: object,
): { readonly plugins: readonly Plugin[] } | { readonly faults: readonly Fault[] } {
  if (!("default" in module))
    return {
      faults: [{ path: [], message: "has no default export; write `export default definePlugin({ … })`" }],
    };
  const exported = module.default;
  const faults = Array.isArray(exported) ? listOf(plugin)(exported, []) : plugin(exported, []);
  if (faults.length > 0) return { faults };
  // The checks above guarantee that every part matches its type.
  return { plugins: (Array.isArray(exported) ? exported : [exported]) as Plugin[] };
}

const fault = (path: Path, message: string): Fault[] => [{ path, message }];

function text(pattern: RegExp, form: string): Check {
  return (value, path) =>
    typeof value === "string" && pattern.test(value) ? [] : fault(path, `must be ${form}`);
}

const aFunction: Check = (value, path) =>
  typeof value === "function" ? [] : fault(path, "must be a function");

const schema: Check = (value, path) => {
  const message = zodFault(value);
  return message ? fault(path, message) : [];
};

function listOf(each: Check): Check {
  return (value, path) =>
    Array.isArray(value)
      ? value.flatMap((item, index) => each(item, [...path, index]))
      : fault(path, "must be an array");
}

/** Checks a map whose keys match `name`. */
function mapOf(name: Check, each: Check): Check {
  return (value, path) =>
    isObject(value)
      ? Object.entries(value).flatMap(([key, item]) => [
          ...name(key, [...path, key]),
          ...each(item, [...path, key]),
        ])
      : fault(path, "must be an object");
}

const plugin: Check = (value, path) => {
  if (!isObject(value)) return fault(path, "must be the result of `definePlugin`: an object with a `name`");
  const known = ["name", ...Object.keys(PARTS)];
  const unknown = Object.keys(value).filter((key) => !known.includes(key));
  return [
    ...NAME(value.name, [...path, "name"]),
    ...unknown.flatMap((key) =>
      fault(
        [...path, key],
        `is not a part of a plugin${didYouMean(key, known) || `; use one of ${known.join(", ")}`}`,
      ),
    ),
    ...Object.entries(PARTS).flatMap(([part, check]) =>
      value[part] === undefined ? [] : check(value[part], [...path, part]),
    ),
  ];
};

const hook: Check = (value, path) => {
  if (!isObject(value)) return fault(path, "must be the result of `defineHook`");
  if (!("hook" in value)) return hookDefinition(value, path);
  const places = ["before", "after"].filter((key) => typeof value[key] === "string");
  return [
    ...hookDefinition(value.hook, [...path, "hook"]),
    ...(places.length === 1 ? [] : fault(path, "must have `before` or `after`: the name of another hook")),
  ];
};

const hookDefinition: Check = (value, path) => {
  if (!isObject(value)) return fault(path, "must be the result of `defineHook`");
  return [
    ...text(/^[a-z][a-z0-9_]{0,63}$/, "1 to 64 characters out of a-z 0-9 _, the first a letter")(value.name, [
      ...path,
      "name",
    ]),
    ...schema(value.options, [...path, "options"]),
    ...aFunction(value.activeByDefault, [...path, "activeByDefault"]),
    ...aFunction(value.create, [...path, "create"]),
  ];
};

const tool: Check = (value, path) => {
  if (!isObject(value)) return fault(path, "must be the result of `defineTool`");
  const { name, parameters, parse, execute } = value;
  const isSchema = isObject(parameters) && ("_def" in parameters || "_zod" in parameters);
  const wrong = isSchema ? zodFault(parameters) : undefined;
  if (wrong) return fault([...path, "parameters"], wrong);
  if (isSchema || typeof parse !== "function" || typeof execute !== "function" || !isObject(parameters))
    return fault(path, "must be the result of `defineTool`");
  return text(/^[A-Za-z_][A-Za-z0-9_-]{0,63}$/, "1 to 64 characters from A-Z, a-z, 0-9, _ and -")(name, [
    ...path,
    "name",
  ]);
};

const backend: Check = (value, path) => {
  if (!isObject(value)) return fault(path, "must be the result of `defineBackend`");
  const { options } = value;
  const wrong = zodFault(options);
  const isZodObject = !wrong && typeof Object(options).extend === "function";
  return [
    ...(isZodObject ? [] : fault([...path, "options"], wrong ?? "must be a `z.object`")),
    ...aFunction(value.create, [...path, "create"]),
  ];
};

const auth: Check = (value, path) => {
  if (!isObject(value)) return fault(path, "must be an object with `name` and `authenticate`");
  return [
    ...NAME(value.name, [...path, "name"]),
    ...aFunction(value.authenticate, [...path, "authenticate"]),
  ];
};

const keyWrapper: Check = (value, path) => {
  if (!isObject(value)) return fault(path, "must be an object with `id`, `wrap` and `unwrap`");
  return [
    ...text(/^[A-Za-z0-9_-]{1,64}$/, "1 to 64 characters from A-Z, a-z, 0-9, _ and -")(value.id, [
      ...path,
      "id",
    ]),
    ...methods("wrap", "unwrap")(value, path),
  ];
};

/** Checks for an object with these methods. */
function methods(...names: readonly string[]): Check {
  return (value, path) => {
    if (!isObject(value))
      return fault(path, `must be an object with ${names.map((name) => `\`${name}\``).join(" and ")}`);
    return names.flatMap((name) => aFunction(value[name], [...path, name]));
  };
}

const NAME = text(
  /^[a-z0-9][a-z0-9_-]{0,63}$/,
  "1 to 64 characters out of a-z 0-9 _ -, the first a letter or a digit",
);
const WORD = text(/^[a-z0-9_-]{1,64}$/, "named by 1 to 64 characters out of a-z 0-9 _ -");

const PARTS: Readonly<Record<string, Check>> = {
  hooks: listOf(hook),
  tools: listOf(tool),
  models: mapOf(WORD, aFunction),
  backends: mapOf(WORD, backend),
  auth,
  recorder: methods("startSpan", "recordEvent"),
  tasks: methods("claim", "settle"),
  vaultKey: keyWrapper,
  routes: aFunction,
};
