// One agent's part of a thread: its messages and calls in order, built from its events.

import { readAgent } from "../protocol/agent-reader.ts";
import { createCellList, type LaneTools } from "./cell-list.ts";
import type { AgentCell, Cell, Lane } from "./cells.ts";
import { createModelMessages } from "./model-messages.ts";
import type { Note } from "./notes.ts";
import { collectSources } from "./sources.ts";
import { createToolCells } from "./tool-cells.ts";
import type { Message, Part, StreamEvent } from "./wire.ts";

/** Facts about a subagent from the thread's state. */
export interface KnownAgent {
  readonly call_id: string;
  readonly id?: string;
  readonly agent: string;
  readonly name: string;
  readonly status: string;
  readonly summary?: string;
}

/** The server's error text for a call that a new message from the user withdrew. The page does not show it as a failure. */
const WITHDRAWN = "Interrupted: a new message came before this call was run.";

export type LaneFold = ReturnType<typeof createLane>;

export function createLane(lane: Lane, tools: LaneTools) {
  const { touch, newKey } = tools;
  const list = createCellList(lane, touch);
  const calls = createToolCells(list, tools);
  const said = createModelMessages(list, calls, tools);
  /** The ids of the thread's messages, in order. */
  const seen = new Set<string>();
  const agents = new Map<string, AgentCell>();
  const sources = collectSources();
  const agentIds = new Map<string, AgentCell>();

  /** The time of the event being applied. */
  let at: string | undefined;

  /** Returns false if the page already shows the message. */
  function isNew({ id }: Message): boolean {
    const isNew = !seen.has(id);
    seen.add(id);
    return isNew;
  }

  const reader = readAgent<never>({
    step: ({ id }) => said.begin(id),
    delta: said.write,
    callDelta: said.call,
    stepEnd({ id, failed, error }) {
      if (failed && !error) said.discard(id);
      else said.end(endOf(error));
    },
    assistant(message) {
      if (!isNew(message)) return;
      sources.add(message.sources);
      said.keep(message, message.tool_calls?.length ? [] : sources.take());
    },
    user(message) {
      if (isNew(message)) list.add(userCell(message, newKey()));
    },
    result(message) {
      if (!isNew(message)) return;
      sources.add(message.sources);
      const { tool_call_id: id, name, content, error, denied = false, created_at } = message;
      if (error === WITHDRAWN) calls.withdraw(id, name);
      else {
        const text = error ?? textIn(content);
        calls.result(id, name, { text, hasFailed: error !== undefined, isDenied: denied, at: created_at });
      }
    },
    toolStart: (name, data) => calls.start(name, data, at),
    toolProgress: (_, data) => calls.progress(data),
    toolEnd: (_, data) => calls.end(data),
  });

  function apply(event: StreamEvent): void {
    at = "ts" in event ? event.ts : undefined;
    reader.see(event);
  }

  /**
   * Returns the card of a subagent. If the card does not exist yet, adds it to the tool call that started the subagent.
   */
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
      else list.add(cell);
      touch(call ?? lane);
    }
    if (known.id !== undefined) agentIds.set(known.id, cell);
    Object.assign(cell, { name, agent: of, status }, summary === undefined ? {} : { summary });
    touch(cell);
    return cell;
  }

  /** Forgets the cell, because the same call can reappear after a rewind. */
  function forget(cell: Cell): void {
    if (cell.kind === "tool") calls.forget(cell);
    for (const below of cell.kind === "tool" ? cell.agents : [cell])
      if (below.kind === "agent") agents.delete(below.thread);
  }

  return {
    lane,
    apply,
    message: (message: Message) => apply({ event: "on_message", data: { message } }),
    agent,
    /** Finds a subagent by the id used in the path of its events. */
    agentOf: (id: string) => agentIds.get(id),
    note: (note: Note) => void list.add({ kind: "note", key: newKey(), ...note }),
    /** Removes a user message and everything after it. */
    cut(id: string): void {
      const dropped = list.cut(id);
      if (dropped.length === 0) return;
      sources.take();
      for (const cell of dropped) forget(cell);
      const known = [...seen];
      for (const gone of known.slice(known.indexOf(id))) {
        seen.delete(gone);
        said.forget(gone);
      }
    },
    /** Removes all notes, or only those with this reason. */
    removeNotes: (reason?: string) =>
      list.remove((cell) => cell.kind === "note" && (reason === undefined || cell.reason === reason)),
    /** Call this when no run continues. Marks open messages as stopped, and open calls as waiting or stopped. */
    settle(state: "waits" | "stopped"): void {
      said.stop();
      calls.settle(state);
    },
    waits: calls.waits,
  };
}

const endOf = (error: { readonly code: string } | undefined) =>
  error === undefined ? "done" : error.code === "cancelled" ? "stopped" : "failed";

const userCell = ({ id, content, created_at: at }: Extract<Message, { role: "user" }>, key: string) =>
  ({ kind: "user", key, id, at, text: textIn(content), attachments: attachmentsIn(content) }) as const;

const textIn = (content: string | readonly Part[]): string =>
  typeof content === "string"
    ? content
    : content.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("\n\n");

const attachmentsIn = (content: string | readonly Part[]) =>
  typeof content === "string" ? [] : content.filter((part) => part.type !== "text");
