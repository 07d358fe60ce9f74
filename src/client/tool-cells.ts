// The tool calls of a lane, from the first streamed argument to the result.

import type { EventData } from "../protocol/event.ts";
import type { CellList, LaneTools } from "./cell-list.ts";
import { append, type CellState, outputOf, type ToolCell } from "./cells.ts";
import type { ToolCall } from "./wire.ts";

export type ToolCells = ReturnType<typeof createToolCells>;

export function createToolCells(list: CellList, { touch, newKey }: Pick<LaneTools, "touch" | "newKey">) {
  const calls = new Map<string, ToolCell>();

  /** Creates a cell. The caller adds it to the list. */
  function make(call: string, name: string): ToolCell {
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

  function setState(cell: ToolCell, state: CellState): void {
    cell.state = state;
    touch(cell);
  }

  return {
    make,
    get: (call: string) => calls.get(call),

    /** Replaces the call that was built from the model's deltas with the call in the thread's message. */
    keep(written: ToolCell | undefined, { id, name, args }: ToolCall, at: string): ToolCell {
      const cell = written?.call === id ? written : make(id, name);
      Object.assign(cell, { name, args, at, writing: outputOf("") });
      calls.set(id, cell);
      return cell;
    },

    /** Forgets the cell, because the same call can reappear after a rewind. */
    forget(cell: ToolCell): void {
      if (calls.get(cell.call) === cell) calls.delete(cell.call);
    },

    start(name: string, { call_id, args }: EventData<"on_tool_start">, ts: string | undefined): void {
      const known = calls.get(call_id);
      // The server replays a call even if its result is already in the thread.
      if (known?.state === "done" || known?.state === "failed") return;
      const cell = known ?? list.add(make(call_id, name));
      Object.assign(cell, { name, args, state: "open", writing: outputOf(""), output: outputOf("") });
      if (ts !== undefined) cell.began = ts;
      touch(cell);
    },

    progress({ call_id, output }: EventData<"on_tool_progress">): void {
      const cell = calls.get(call_id);
      if (cell?.state !== "open") return;
      append(cell.output, output);
      touch(cell);
    },

    end({ call_id, duration_ms, interrupted, error, output }: EventData<"on_tool_end">): void {
      const cell = calls.get(call_id);
      if (!cell) return;
      cell.ms = duration_ms;
      const text = error ?? output;
      if (!interrupted && text !== undefined) cell.output = outputOf(text);
      setState(cell, interrupted ? "waits" : error === undefined ? "done" : "failed");
    },

    /** Sets the result from the thread's message. */
    result(
      call: string,
      name: string,
      { text, hasFailed, isDenied, at }: { text: string; hasFailed: boolean; isDenied: boolean; at: string },
    ): void {
      const cell = calls.get(call) ?? list.add(make(call, name));
      cell.at = at;
      if (isDenied) cell.isDenied = true;
      cell.output = outputOf(text);
      setState(cell, hasFailed ? "failed" : "done");
    },

    /** Marks a call that was not run because a new message withdrew its question. */
    withdraw(call: string, name: string): void {
      const cell = calls.get(call) ?? list.add(make(call, name));
      cell.isWithdrawn = true;
      cell.output = outputOf("Withdrawn by a new message.");
      setState(cell, "stopped");
    },

    waits(call: string): void {
      const cell = calls.get(call);
      if (cell?.state === "open") setState(cell, "waits");
    },

    /** Call this when no run continues. Marks open calls as waiting or stopped. */
    settle(state: "waits" | "stopped"): void {
      for (const cell of calls.values())
        if (cell.state === "open" || (cell.state === "waits" && state === "stopped")) setState(cell, state);
    },
  };
}
