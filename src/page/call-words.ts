// Describes a call of a built-in tool in words: "Wrote report.md", "Ran npm test · exit 3". Independent of the DOM.

import type { ToolCell } from "../client/cells.ts";
import { countsOf, diffLines } from "./diff.ts";
import { isObject } from "./form.ts";
import type { Texts } from "./texts/en.ts";

type Args = Readonly<Record<string, unknown>>;

export interface CallWords {
  /** "Wrote" */
  readonly verb: string;
  /** The object of the verb, as written by the model. */
  readonly object?: string;
  /** "+3 −1" */
  readonly rest?: string;
}

type Words = Texts["calls"];
type Tool = keyof Words["verbs"];

type ShownCall = Pick<ToolCell, "name" | "state"> & { readonly args: Args | undefined };

/** The argument that names the object of a call. Undefined if the call has none. */
const OBJECTS: Readonly<Record<Tool, string | undefined>> = {
  ls: "path",
  glob: "pattern",
  grep: "pattern",
  read_file: "path",
  write_file: "path",
  edit_file: "path",
  execute: "command",
  write_todos: undefined,
  ask_user: "question",
  web_fetch: "url",
  web_search: "query",
  request_host: "host",
  current_datetime: undefined,
  load_skill: "name",
  write_note: "name",
  read_note: "name",
  list_notes: undefined,
  create_tasks: undefined,
  list_tasks: undefined,
  claim_task: "id",
  update_task: "id",
  list_agents: undefined,
  delegate: undefined,
  task: "task",
  start_task: "task",
  check_tasks: undefined,
  wait_tasks: undefined,
  cancel_task: "id",
  task_complete: "summary",
};

const isTool = (name: string): name is Tool => Object.hasOwn(OBJECTS, name);

/**
 * Returns undefined for other tools, and for arguments that the tool would refuse. The page shows such calls unchanged.
 */
export function wordsOf({ name, args, state }: ShownCall, words: Words): CallWords | undefined {
  if (!isTool(name) || !args) return undefined;
  const key = OBJECTS[name];
  const object = key === undefined ? undefined : (args[key] ?? (key === "path" ? args.file_path : undefined));
  const isOptional = name === "ls";
  if (key !== undefined && typeof object !== "string" && !isOptional) return undefined;
  const rest = restOf(name, args, words);
  const [doing, did, wanted] = words.verbs[name];
  return {
    verb: state === "open" ? doing : state === "done" ? did : wanted,
    ...(typeof object === "string" ? { object } : {}),
    ...(rest === undefined ? {} : { rest }),
  };
}

function restOf(name: Tool, args: Args, words: Words): string | undefined {
  if (name === "edit_file") {
    const { old_text, new_text } = args;
    if (typeof old_text !== "string" || typeof new_text !== "string") return undefined;
    const { added, removed } = countsOf(diffLines(old_text, new_text));
    return `+${added} −${removed}`;
  }
  if (name === "write_todos" && Array.isArray(args.todos)) {
    const done = args.todos.filter((todo) => isObject(todo) && todo.status === "done").length;
    return words.doneOf(done, args.todos.length);
  }
  if ((name === "delegate" || name === "create_tasks") && Array.isArray(args.tasks))
    return words.tasks(args.tasks.length);
  if (name === "update_task" && typeof args.status === "string") return args.status;
  return undefined;
}

/** The line in which `execute` reports the end of a command, after the command's output. */
const REPORT = /\[(?:exit_code: (-?\d+)|killed by (\w[\w ]{0,30}))(?:, [^\]\n]*)?\]\s*$/;

/** Returns how a command failed, such as "exit 3", or undefined if it succeeded. */
export function badEndOf(name: string, output: string, words: Words): string | undefined {
  if (name !== "execute") return undefined;
  const [, code, signal] = REPORT.exec(output.slice(-200)) ?? [];
  if (signal !== undefined) return words.killed(signal);
  return code === undefined || code === "0" ? undefined : words.exit(code);
}

/** Returns the path of the file that contains the whole output, if the output was shortened for the model. */
export const wholeOutputIn = (output: string): string | undefined =>
  /\(truncated \d+ characters; the full text is in (\.skein\/results\/[\w-]{1,200}\.txt)\)/.exec(output)?.[1];

/** Returns the tasks that a call delegates to subagents, in order. */
export function tasksOf(args: Args | undefined): readonly { agent: string; task: string }[] {
  if (!args) return [];
  const all: readonly unknown[] = Array.isArray(args.tasks) ? args.tasks : [args];
  return all.flatMap((each) =>
    isObject(each) && typeof each.agent === "string" && typeof each.task === "string"
      ? [{ agent: each.agent, task: each.task }]
      : [],
  );
}
