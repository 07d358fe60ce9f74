// What the agent changed in the files of its workspace, as the thread has kept it. No DOM.

import type { Message, ThreadState } from "../client/client.ts";
import { indexIn } from "../lib/search.ts";
import { isObject } from "./form.ts";
import { withinWorkspace } from "./tree.ts";

export interface FileChange {
  /** From the workspace on. */
  readonly path: string;
  readonly op: "write" | "edit";
  /** After the last change. */
  readonly bytes: number;
  /** Its text after the last change, and before that one change, as far as they are kept. */
  readonly content?: string;
  readonly before?: string;
  /** What `edit_file` has replaced since the file was last written whole, oldest first. */
  readonly edits: readonly Edit[];
}

export interface Edit {
  readonly old_text: string;
  readonly new_text: string;
}

/** A difference to show. */
export interface Difference {
  readonly before: string;
  readonly after: string;
  /** The texts are the file, so that their lines have numbers. */
  readonly isWhole: boolean;
}

/** What is known of the changes, oldest first: of the last one the file as a whole, of edits before it what each replaced. */
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

/** How many edits came before the text `before`: the rest of them lead from it to `content`. Edits at once share a `before`. */
function earlierEdits(edits: readonly Edit[], before: string, content: string): number {
  for (let earlier = edits.length - 1; earlier > 0; earlier--)
    if (edits.slice(earlier).reduce(edited, before) === content) return earlier;
  return 0;
}

/** As `edit_file` does: the first occurrence is replaced. */
export function edited(text: string, { old_text, new_text }: Edit): string {
  const at = indexIn(text, old_text);
  return at < 0 ? text : text.slice(0, at) + new_text + text.slice(at + old_text.length);
}

/** The last changed first. */
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

/** The edits that succeeded, by path. */
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
