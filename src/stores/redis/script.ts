// Lua scripts whose keys and arguments have names: the text names them once, and a call cannot mix them up.

import { hash } from "node:crypto";

/** `Reply` is what the script's own last lines return, as the client shows it: strings, integers, null, and lists. */
export interface Script<Key extends string, Arg extends string, Reply> {
  readonly text: string;
  readonly sha: string;
  readonly keys: readonly Key[];
  readonly args: readonly Arg[];
  /** Only ever a type. */
  readonly reply?: Reply;
}

interface Definition<Key extends string, Arg extends string> {
  /** `reads` changes nothing. `adds` is refused while Redis is full, before anything is changed; `always` is not. */
  readonly kind: "reads" | "adds" | "always";
  readonly keys: readonly Key[];
  readonly args: readonly Arg[];
  readonly lua: string;
}

const FLAGS = { reads: " flags=no-writes", adds: "", always: " flags=allow-oom" };

/**
 * In `lua` every key and argument is a local of its name, arguments as text; `time()` is Redis's own clock, in
 * milliseconds; `REST` is the place in ARGV of the first argument without a name.
 */
export function script<Reply>() {
  return <const Key extends string, const Arg extends string>(
    definition: Definition<Key, Arg>,
  ): Script<Key, Arg, Reply> => {
    const { kind, keys, args, lua } = definition;
    const names = [...locals(keys, "KEYS", 0), ...locals(args, "ARGV", 1)];
    const text = [`#!lua${FLAGS[kind]}`, ...names, `local REST = ${args.length + 2}`, TIME, lua].join("\n");
    return { text, sha: hash("sha1", text), keys, args };
  };
}

const locals = (names: readonly string[], list: string, before: number) =>
  names.map((name, index) => `local ${name} = ${list}[${index + 1 + before}]`);

/** The first argument of all is the time in place of Redis's own, or nothing. */
const TIME = `
local function time()
  if ARGV[1] ~= '' then return tonumber(ARGV[1]) end
  local now = redis.call('TIME')
  return now[1] * 1000 + math.floor(now[2] / 1000)
end`;
