// Which engine a new sandbox is made on.

export interface EngineLoad {
  readonly name: string;
  readonly isUp: boolean;
  readonly isDraining: boolean;
  /** How many may run at once. */
  readonly capacity: number;
  readonly running: number;
  /** Those that have files on it, running or not. */
  readonly sandboxes: number;
}

/**
 * Of the engines that are up and not draining, the one with the fewest sandboxes for its capacity; one that has room for
 * another to run comes first. Of equal ones the first by name. Undefined when there is none.
 */
export function placeNew(engines: readonly EngineLoad[]): string | undefined {
  const [first] = engines
    .filter(({ isUp, isDraining }) => isUp && !isDraining)
    .sort(
      (a, b) =>
        Number(isFull(a)) - Number(isFull(b)) || shareOf(a) - shareOf(b) || (a.name < b.name ? -1 : 1),
    );
  return first?.name;
}

const isFull = ({ running, capacity }: EngineLoad) => running >= capacity;
const shareOf = ({ sandboxes, capacity }: EngineLoad) => sandboxes / capacity;
