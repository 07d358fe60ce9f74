// The cells of a lane as a list. Every change to the list marks the lane as changed.

import type { Cell, Lane } from "./cells.ts";

export interface LaneTools {
  readonly touch: (what: object) => void;
  readonly now: () => number;
  readonly newKey: () => string;
}

export type CellList = ReturnType<typeof createCellList>;

export function createCellList(lane: Lane, touch: LaneTools["touch"]) {
  const { cells } = lane;

  function remove(isGone: (cell: Cell) => boolean): void {
    const kept = cells.filter((cell) => !isGone(cell));
    if (kept.length === cells.length) return;
    cells.splice(0, cells.length, ...kept);
    touch(lane);
  }

  return {
    remove,
    add<T extends Cell>(cell: T): T {
      cells.push(cell);
      touch(lane);
      return cell;
    },
    /** Removes the old cells and inserts the new ones at the position of the first old cell, or at the end of the list. */
    replace(old: readonly Cell[], by: readonly Cell[]): void {
      const at = old.length > 0 ? cells.findIndex((cell) => old.includes(cell)) : cells.length;
      remove((cell) => old.includes(cell));
      cells.splice(at, 0, ...by);
      for (const cell of by) touch(cell);
      touch(lane);
    },
    /** Removes the message with this id and everything after it. Returns the removed cells. */
    cut(id: string): readonly Cell[] {
      const at = cells.findIndex((cell) => (cell.kind === "user" || cell.kind === "text") && cell.id === id);
      if (at === -1) return [];
      const dropped = cells.splice(at);
      touch(lane);
      return dropped;
    },
  };
}
