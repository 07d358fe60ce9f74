// Tells when files have changed, however that is done: written in place, replaced by a rename, or behind a link that
// points elsewhere. It looks at them now and then, as notices of the file system miss the latter two, and some systems
// give none.

import { stat } from "node:fs/promises";

/** How often is looked, and how long files must stay as they are before a change is told, in ms. */
export interface Pace {
  readonly everyMs: number;
  readonly settledMs: number;
}

export interface FileWatch {
  close(): void;
}

/**
 * Calls `onChange` once for changes that belong together, and not again before it has ended. `files` is asked anew each
 * time; a file that is not there is one state of it. `onChange` must not throw. What changes before the first look, which
 * is begun at once, is not told.
 */
export function watchFiles(
  files: () => readonly string[],
  onChange: () => Promise<void>,
  pace: Pace,
): FileWatch {
  let isClosed = false;
  let timer: NodeJS.Timeout | undefined;
  const again = (known: ReadonlyMap<string, string>, ms: number) => {
    if (isClosed) return;
    timer = setTimeout(() => void look(known), ms).unref();
  };

  async function look(known: ReadonlyMap<string, string>): Promise<void> {
    const now = await statesOf(files());
    if (!isOther(known, now)) return again(now, pace.everyMs);
    await settled(now);
  }

  /** Half a file is not worth reading. */
  async function settled(first: ReadonlyMap<string, string>): Promise<void> {
    let now = first;
    for (let before: typeof now | undefined; !before || isOther(before, now); ) {
      await new Promise((resolve) => setTimeout(resolve, pace.settledMs).unref());
      if (isClosed) return;
      before = now;
      now = await statesOf(files());
    }
    if (isClosed) return;
    // What changes from here on is other than `now`; of files that are new, than what they are a moment later.
    await onChange();
    again(new Map([...(await statesOf(files())), ...now]), pace.everyMs);
  }

  void statesOf(files()).then((first) => again(first, pace.everyMs));
  return {
    close() {
      isClosed = true;
      clearTimeout(timer);
    },
  };
}

/** One that is watched only since a moment ago has not changed. */
function isOther(before: ReadonlyMap<string, string>, now: ReadonlyMap<string, string>): boolean {
  return [...now].some(([file, state]) => before.has(file) && before.get(file) !== state);
}

async function statesOf(files: readonly string[]): Promise<ReadonlyMap<string, string>> {
  return new Map(
    await Promise.all(
      files.map(async (file) => {
        const found = await stat(file, { bigint: true }).catch(() => undefined);
        const state = found
          ? [found.dev, found.ino, found.size, found.mtimeNs, found.ctimeNs].join()
          : "gone";
        return [file, state] as const;
      }),
    ),
  );
}
