// The files that the agent changed in its workspace, as recorded in the thread's state. Independent of the DOM.

import type { Message, ThreadState } from "../client/client.ts";
import { indexIn } from "../lib/search.ts";
import { isObject } from "./form.ts";
import { withinWorkspace } from "./tree.ts";

export interface FileChange {
  /** Path relative to the workspace. */
  readonly path: string;
  readonly op: "write" | "edit";
  /** The size in bytes after the last change. */
  readonly bytes: number;
  /** The text after the last change and before it, if the state contains them. */
  readonly content?: string;
  readonly before?: string;
  /** The replacements by `edit_file` since the file was last written as a whole, oldest first. */
  readonly edits: readonly Edit[];
}

export interface Edit {
  readonly old_text: string;
  readonly new_text: string;
}

/** A diff to show. */
export interface Difference {
  readonly before: string;
  readonly after: string;
  /** True if the texts are the whole file, so line numbers are correct. */
  readonly isWhole: boolean;
}

/**
 * Returns the known changes, oldest first: a whole-file diff for the last change, and the replaced text of each earlier
 * edit.
 */
export function differencesOf({ before, content, edits, op }: FileChange): Difference[] {
  const ofEdits = edits.map(({ old_text, new_text }) => ({
    before: old_text,
    after: new_text,
    isWhole: false,
  }));
  if (content === undefined) return ofEdits;
  if (before !== undefined) {
    const earlier = op === "edit" ? earlierEdits(edits, before, content) : 0;
    return [...ofEdits.slice(0, earlier), { before, after: content, isWhole: true }];
  }
  return op === "write" ? [{ before: "", after: content, isWhole: true }] : ofEdits;
}

/**
 * Returns the number of edits before the text `before`. The remaining edits turn `before` into `content`. Parallel
 * edits share one `before`.
 */
function earlierEdits(edits: readonly Edit[], before: string, content: string): number {
  for (let earlier = edits.length - 1; earlier > 0; earlier--)
    if (edits.slice(earlier).reduce(edited, before) === content) return earlier;
  return 0;
}

/** Replaces the first occurrence, like `edit_file`. */
export function edited(text: string, { old_text, new_text }: Edit): string {
  const at = indexIn(text, old_text);
  return at < 0 ? text : text.slice(0, at) + new_text + text.slice(at + old_text.length);
}

/** Returns the changed files, starting with the most recent change. */
export function changedFiles({ files, messages }: ThreadState, workdir: string): FileChange[] {
  if (!isObject(files)) return [];
  const edits = editsIn(messages, workdir);
  return Object.entries(files)
    .flatMap(([file, record]): FileChange[] => {
      if (!isObject(record)) return [];
      const path = withinWorkspace(workdir, file);
      const { op, bytes, content, before } = record;
      return [
        {
          path,
          op: op === "edit" ? "edit" : "write",
          bytes: typeof bytes === "number" ? bytes : 0,
          ...(typeof content === "string" && { content }),
          ...(typeof before === "string" && { before }),
          edits: edits.get(path) ?? [],
        },
      ];
    })
    .reverse();
}

/** Returns the successful edits, by path. */
function editsIn(messages: readonly Message[], workdir: string): ReadonlyMap<string, readonly Edit[]> {
  const failed = new Set(
    messages.flatMap((message) =>
      message.role === "tool" && message.error !== undefined ? [message.tool_call_id] : [],
    ),
  );
  const answered = new Set(
    messages.flatMap((message) => (message.role === "tool" ? [message.tool_call_id] : [])),
  );
  const all = new Map<string, Edit[]>();
  for (const { id, name, args } of messages.flatMap(callsOf)) {
    if (failed.has(id) || !answered.has(id) || typeof args.path !== "string") continue;
    const path = withinWorkspace(workdir, args.path);
    if (name === "write_file") all.delete(path);
    const { old_text, new_text } = args;
    if (name !== "edit_file" || typeof old_text !== "string" || typeof new_text !== "string") continue;
    all.set(path, [...(all.get(path) ?? []), { old_text, new_text }]);
  }
  return all;
}

const callsOf = (message: Message) => (message.role === "assistant" ? (message.tool_calls ?? []) : []);
