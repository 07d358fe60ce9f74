// The model's messages in a lane. They are built from deltas first and then replaced by the thread's messages.

import type { CallDelta, PartKind } from "../protocol/agent-reader.ts";
import type { CellList, LaneTools } from "./cell-list.ts";
import {
  append,
  type Cell,
  type CellState,
  type TextCell,
  type ThoughtCell,
  type ToolCell,
} from "./cells.ts";
import type { ToolCells } from "./tool-cells.ts";
import type { Message, WebSource } from "./wire.ts";

/** The part of a message that has arrived so far. */
interface ModelMessage {
  readonly id: string;
  thought?: ThoughtCell;
  text?: TextCell;
  /** The calls, by their index in the message. */
  readonly calls: Map<number, ToolCell>;
  /** True if the thread contains the message, in which case replayed deltas change nothing. */
  isKept: boolean;
  thoughtSince?: number;
}

type AssistantMessage = Extract<Message, { role: "assistant" }>;

export function createModelMessages(list: CellList, calls: ToolCells, { touch, now, newKey }: LaneTools) {
  const known = new Map<string, ModelMessage>();
  let open: ModelMessage | undefined;

  function messageOf(id: string): ModelMessage {
    const message = known.get(id) ?? { id, calls: new Map<number, ToolCell>(), isKept: false };
    known.set(id, message);
    return message;
  }

  function discard(message: ModelMessage): void {
    const parts = new Set(partsOf(message));
    list.remove((cell) => parts.has(cell));
    for (const cell of message.calls.values()) calls.forget(cell);
    known.delete(message.id);
    if (open === message) open = undefined;
  }

  function close(cell: TextCell | ThoughtCell | undefined, state: CellState): void {
    if (cell?.state !== "open") return;
    cell.state = state;
    touch(cell);
  }

  function endThought({ thought, thoughtSince }: ModelMessage): void {
    if (thought?.state !== "open") return;
    if (thoughtSince !== undefined) thought.ms = now() - thoughtSince;
    close(thought, "done");
  }

  function think(message: ModelMessage, delta: string): void {
    message.thoughtSince ??= now();
    message.thought ??= list.add({ kind: "thought", key: newKey(), text: "", state: "open" });
    message.thought.text += delta;
    touch(message.thought);
  }

  function say(message: ModelMessage, delta: string): void {
    message.text ??= list.add({ kind: "text", key: newKey(), id: message.id, text: "", state: "open" });
    message.text.text += delta;
    touch(message.text);
  }

  function call(message: ModelMessage, { index, id, name, args_delta }: CallDelta): void {
    let cell = message.calls.get(index);
    if (!cell) {
      if (name === undefined) return;
      cell = list.add(calls.make(id ?? newKey(), name));
      message.calls.set(index, cell);
    }
    append(cell.writing, args_delta);
    touch(cell);
  }

  /**
   * Returns the message to extend. If the start of a message was missed, its deltas are dropped, because the thread has
   * the message or will have it.
   */
  const written = (): ModelMessage | undefined => (open?.isKept ? undefined : open);

  return {
    begin(id: string): void {
      // The model call is retried, so the messages of failed attempts are discarded.
      for (const tried of [...known.values()]) if (!tried.isKept) discard(tried);
      open = messageOf(id);
    },

    write(kind: PartKind, delta: string): void {
      const message = written();
      if (!message) return;
      if (kind === "thought") think(message, delta);
      else {
        endThought(message);
        say(message, delta);
      }
    },

    call(delta: CallDelta): void {
      const message = written();
      if (!message) return;
      endThought(message);
      call(message, delta);
    },

    end(state: "done" | "failed" | "stopped"): void {
      if (!open) return;
      endThought(open);
      close(open.text, state);
      for (const cell of state === "done" ? [] : open.calls.values()) {
        cell.state = "stopped";
        touch(cell);
      }
      open = undefined;
    },

    discard(id: string): void {
      const message = known.get(id);
      if (message && !message.isKept) discard(message);
    },

    /** Replaces the cells that were built from deltas with the thread's message. */
    keep(message: AssistantMessage, sources: readonly WebSource[]): void {
      const { id } = message;
      if (known.get(id)?.isKept) return;
      const streamed = messageOf(id);
      const kept = keptOf(message, streamed);
      if (kept.text && sources.length > 0) kept.text.sources = sources;
      known.delete(streamed.id);
      known.set(id, kept);
      if (open === streamed) open = undefined;
      list.replace(partsOf(streamed), partsOf(kept));
    },

    /** Call this when the message has been removed from the thread. */
    forget: (id: string) => void known.delete(id),

    /** Call this when no run continues. */
    stop(): void {
      open = undefined;
      for (const { thought, text } of known.values())
        for (const cell of [thought, text]) close(cell, "stopped");
    },
  };

  function keptOf(message: AssistantMessage, streamed: ModelMessage): ModelMessage {
    const { id, content, reasoning = [], tool_calls = [], incomplete, created_at: at } = message;
    const kept: ModelMessage = { id, calls: new Map(), isKept: true };
    const thought = reasoning.map(({ text }) => text).join("\n\n");
    if (thought.trim() !== "") {
      kept.thought = streamed.thought ?? { kind: "thought", key: newKey(), text: "", state: "done" };
      Object.assign(kept.thought, { text: thought, state: "done" });
    }
    if (content !== "") {
      kept.text = streamed.text ?? { kind: "text", key: newKey(), id, text: "", state: "done" };
      Object.assign(kept.text, { id, at, text: content, state: incomplete ?? "done" });
      if (incomplete) kept.text.isKept = true;
    }
    for (const [index, made] of tool_calls.entries())
      kept.calls.set(index, calls.keep(streamed.calls.get(index), made, at));
    return kept;
  }
}

const partsOf = ({ thought, text, calls }: ModelMessage): Cell[] =>
  [thought, text, ...calls.values()].filter((cell) => cell !== undefined);
