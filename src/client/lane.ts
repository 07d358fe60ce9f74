// One agent's part of a thread: its messages and calls in order, as its events build them.

import {
  type AgentCell,
  append,
  type Cell,
  type CellState,
  type Lane,
  outputOf,
  type TextCell,
  type ThoughtCell,
  type ToolCell,
} from "./cells.ts";
import type { Note } from "./notes.ts";
import type { Message, Part, StreamEvent } from "./wire.ts";

export interface LaneTools {
  readonly touch: (what: object) => void;
  readonly now: () => number;
  readonly newKey: () => string;
}

/** What is known of a subagent besides its events. */
export interface KnownAgent {
  readonly call_id: string;
  readonly id?: string;
  readonly agent: string;
  readonly name: string;
  readonly status: string;
  readonly summary?: string;
}

/** A message of the model, as far as it is there. */
interface Said {
  readonly id: string;
  thought?: ThoughtCell;
  text?: TextCell;
  /** By their place in the message. */
  readonly calls: Map<number, ToolCell>;
  /** It is in the thread: its deltas, when they come again, change nothing. */
  isKept: boolean;
  thoughtSince?: number;
}

export type LaneFold = ReturnType<typeof createLane>;

export function createLane(lane: Lane, { touch, now, newKey }: LaneTools) {
  const { cells } = lane;
  /** The thread's messages, in its order. */
  const seen = new Set<string>();
  const said = new Map<string, Said>();
  const calls = new Map<string, ToolCell>();
  const agents = new Map<string, AgentCell>();
  const agentIds = new Map<string, AgentCell>();
  let open: Said | undefined;

  function add<T extends Cell>(cell: T): T {
    cells.push(cell);
    touch(lane);
    return cell;
  }

  function remove(gone: (cell: Cell) => boolean): void {
    const kept = cells.filter((cell) => !gone(cell));
    if (kept.length === cells.length) return;
    cells.splice(0, cells.length, ...kept);
    touch(lane);
  }

  const partsOf = ({ thought, text, calls: made }: Said): Cell[] =>
    [thought, text, ...made.values()].filter((cell) => cell !== undefined);

  function discard(message: Said): void {
    const parts = new Set(partsOf(message));
    remove((cell) => parts.has(cell));
    for (const cell of message.calls.values()) if (calls.get(cell.call) === cell) calls.delete(cell.call);
    said.delete(message.id);
    if (open === message) open = undefined;
  }

  /** It may come again. */
  function forget(cell: Cell): void {
    if (cell.kind === "tool") calls.delete(cell.call);
    for (const below of cell.kind === "tool" ? cell.agents : [cell])
      if (below.kind === "agent") agents.delete(below.thread);
  }

  function saidBy(id: string): Said {
    const known = said.get(id) ?? { id, calls: new Map<number, ToolCell>(), isKept: false };
    said.set(id, known);
    return known;
  }

  function close(cell: TextCell | ThoughtCell | undefined, state: CellState): void {
    if (cell?.state !== "open") return;
    cell.state = state;
    touch(cell);
  }

  function endThought(message: Said): void {
    const { thought, thoughtSince } = message;
    if (thought?.state !== "open") return;
    if (thoughtSince !== undefined) thought.ms = now() - thoughtSince;
    close(thought, "done");
  }

  function newCall(call: string, name: string): ToolCell {
    const cell: ToolCell = {
      kind: "tool",
      key: newKey(),
      call,
      name,
      state: "open",
      agents: [],
      writing: outputOf(""),
      output: outputOf(""),
    };
    calls.set(call, cell);
    return cell;
  }

  function stream(data: Delta) {
    // The message began before the first event that was seen.
    open ??= saidBy(`unknown ${newKey()}`);
    if (open.isKept) return;
    if ("reasoning_delta" in data) {
      open.thoughtSince ??= now();
      open.thought ??= add({ kind: "thought", key: newKey(), text: "", state: "open" });
      open.thought.text += data.reasoning_delta;
      return touch(open.thought);
    }
    if (!("delta" in data || "tool_call" in data)) return;
    endThought(open);
    if ("delta" in data) {
      open.text ??= add({ kind: "text", key: newKey(), id: open.id, text: "", state: "open" });
      open.text.text += data.delta;
      return touch(open.text);
    }
    const { index, id, name, args_delta } = data.tool_call;
    let cell = open.calls.get(index);
    if (!cell) {
      if (name === undefined) return;
      cell = add(newCall(id ?? newKey(), name));
      open.calls.set(index, cell);
    }
    append(cell.writing, args_delta);
    touch(cell);
  }

  /** What is in the thread replaces what the deltas have built. */
  function assistant(message: Extract<Message, { role: "assistant" }>): void {
    const known = said.get(message.id);
    if (known?.isKept) return;
    const from = known ?? (open?.id.startsWith("unknown ") ? open : undefined) ?? saidBy(message.id);
    const before = partsOf(from);
    const at = before.length > 0 ? cells.findIndex((cell) => before.includes(cell)) : cells.length;
    remove((cell) => before.includes(cell));
    const kept: Said = { id: message.id, calls: new Map(), isKept: true };
    said.delete(from.id);
    said.set(message.id, kept);
    if (open === from) open = undefined;

    const thought = message.reasoning?.map(({ text }) => text).join("\n\n") ?? "";
    if (thought.trim() !== "") {
      kept.thought = from.thought ?? { kind: "thought", key: newKey(), text: "", state: "done" };
      Object.assign(kept.thought, { text: thought, state: "done" });
    }
    if (message.content !== "") {
      kept.text = from.text ?? { kind: "text", key: newKey(), id: message.id, text: "", state: "done" };
      Object.assign(kept.text, { id: message.id, text: message.content, state: "done" });
    }
    for (const [index, call] of (message.tool_calls ?? []).entries()) {
      const written = from.calls.get(index);
      const cell = written?.call === call.id ? written : newCall(call.id, call.name);
      Object.assign(cell, { name: call.name, args: call.args, writing: outputOf("") });
      calls.set(call.id, cell);
      kept.calls.set(index, cell);
    }
    const parts = partsOf(kept);
    cells.splice(at, 0, ...parts);
    for (const cell of parts) touch(cell);
    touch(lane);
  }

  function message(added: Message) {
    if (seen.has(added.id)) return;
    seen.add(added.id);
    if (added.role === "assistant") return assistant(added);
    if (added.role === "user") {
      const key = newKey();
      const { id, created_at: at } = added;
      add({
        kind: "user",
        key,
        id,
        at,
        text: textIn(added.content),
        attachments: attachmentsIn(added.content),
      });
    }
    if (added.role !== "tool") return;
    const cell = calls.get(added.tool_call_id) ?? add(newCall(added.tool_call_id, added.name));
    cell.output = outputOf(added.error ?? textIn(added.content));
    cell.state = added.error === undefined ? "done" : "failed";
    touch(cell);
  }

  function toolEnd({ data }: Extract<StreamEvent, { event: "on_tool_end" }>): void {
    const cell = calls.get(data.call_id);
    if (!cell) return;
    cell.ms = data.duration_ms;
    if (data.interrupted) cell.state = "waits";
    else {
      cell.state = data.error === undefined ? "done" : "failed";
      const text = data.error ?? data.output;
      if (text !== undefined) cell.output = outputOf(text);
    }
    touch(cell);
  }

  function apply(event: StreamEvent) {
    switch (event.event) {
      case "on_chat_model_start": {
        // What failed before is tried again.
        for (const tried of [...said.values()]) if (!tried.isKept) discard(tried);
        open = saidBy(event.data.message_id);
        return;
      }
      case "on_chat_model_stream":
        return stream(event.data);
      case "on_chat_model_end": {
        if (!open) return;
        const { error } = event.data;
        endThought(open);
        close(open.text, error ? "failed" : "done");
        for (const cell of error ? open.calls.values() : []) {
          cell.state = "stopped";
          touch(cell);
        }
        if (!open.id.startsWith("unknown ")) open = undefined;
        return;
      }
      case "message_discard": {
        const gone = said.get(event.data.message_id) ?? open;
        if (gone && !gone.isKept) discard(gone);
        return;
      }
      case "on_tool_start": {
        const { call_id, args } = event.data;
        const known = calls.get(call_id);
        const hasEnded = known && (known.state === "done" || known.state === "failed");
        // It comes again with what is in the thread already.
        if (hasEnded) return;
        const cell = known ?? add(newCall(call_id, event.name));
        Object.assign(cell, {
          name: event.name,
          args,
          state: "open",
          writing: outputOf(""),
          output: outputOf(""),
        });
        if (event.ts !== undefined) cell.began = event.ts;
        return touch(cell);
      }
      case "on_tool_progress": {
        const cell = calls.get(event.data.call_id);
        if (cell?.state !== "open") return;
        append(cell.output, event.data.output);
        return touch(cell);
      }
      case "on_tool_end":
        return toolEnd(event);
    }
  }

  /** The card of a subagent; a new one is put into that of its call. */
  function agent(thread: string, known: KnownAgent): AgentCell {
    const { name, agent: of, status, summary } = known;
    let cell = agents.get(thread);
    if (!cell) {
      cell = {
        kind: "agent",
        key: newKey(),
        thread,
        name,
        agent: of,
        status,
        summary: "",
        lane: { cells: [] },
      };
      agents.set(thread, cell);
      const call = calls.get(known.call_id);
      if (call) call.agents.push(cell);
      else add(cell);
      touch(call ?? lane);
    }
    if (known.id !== undefined) agentIds.set(known.id, cell);
    Object.assign(cell, { name, agent: of, status }, summary === undefined ? {} : { summary });
    touch(cell);
    return cell;
  }

  return {
    lane,
    apply,
    message,
    agent,
    /** By its id in the paths of its events. */
    agentOf: (id: string) => agentIds.get(id),
    note: (note: Note) => void add({ kind: "note", key: newKey(), ...note }),
    /** Drops a message of the user and all that follows it. */
    cut(id: string): void {
      const at = cells.findIndex((cell) => cell.kind === "user" && cell.id === id);
      if (at === -1) return;
      for (const cell of cells.splice(at)) forget(cell);
      const known = [...seen];
      for (const gone of known.slice(known.indexOf(id))) {
        seen.delete(gone);
        said.delete(gone);
      }
      touch(lane);
    },
    removeNotes: () => remove(({ kind }) => kind === "note"),
    /** Nothing continues: what has not ended waits, or was stopped. */
    settle(state: "waits" | "stopped"): void {
      open = undefined;
      for (const { thought, text } of said.values())
        for (const cell of [thought, text]) close(cell, "stopped");
      for (const cell of calls.values())
        if (cell.state === "open" || (cell.state === "waits" && state === "stopped")) {
          cell.state = state;
          touch(cell);
        }
    },
    waits(call: string): void {
      const cell = calls.get(call);
      if (cell?.state !== "open") return;
      cell.state = "waits";
      touch(cell);
    },
  };
}

type Delta = Extract<StreamEvent, { event: "on_chat_model_stream" }>["data"];

const textIn = (content: string | readonly Part[]): string =>
  typeof content === "string"
    ? content
    : content.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("\n\n");

const attachmentsIn = (content: string | readonly Part[]) =>
  typeof content === "string" ? [] : content.filter((part) => part.type !== "text");
