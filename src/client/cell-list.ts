// The cells of a lane as a list. A change of the list touches the lane.

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
    /** Puts the new cells where the first of the old ones was, or at the end. */
    replace(old: readonly Cell[], by: readonly Cell[]): void {
      const at = old.length > 0 ? cells.findIndex((cell) => old.includes(cell)) : cells.length;
      remove((cell) => old.includes(cell));
      cells.splice(at, 0, ...by);
      for (const cell of by) touch(cell);
      touch(lane);
    },
    /** Drops the message of this id and all that follows it. Returns what was dropped. */
    cut(id: string): readonly Cell[] {
      const at = cells.findIndex((cell) => (cell.kind === "user" || cell.kind === "text") && cell.id === id);
      if (at === -1) return [];
      const dropped = cells.splice(at);
      touch(lane);
      return dropped;
    },
  };
}
