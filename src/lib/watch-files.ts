// Watches files by polling. File system events miss files that are replaced by a rename or reached through a changed
// link, as in Kubernetes config maps. Some systems have no such events.

import { stat } from "node:fs/promises";

/**
 * The polling interval, and how long files must stay unchanged before `onChange` is called. Both are in milliseconds.
 */
export interface Pace {
  readonly everyMs: number;
  readonly settledMs: number;
}

export interface FileWatch {
  close(): void;
}

/**
 * Calls `onChange` once for changes that happen together, and never concurrently. `onChange` must not throw. Each poll
 * calls `files`. Creating and deleting a file count as changes. The first poll starts at once; changes before it are
 * not reported.
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

  /** Waits until the files are no longer being written, then reports the change. */
  async function settled(first: ReadonlyMap<string, string>): Promise<void> {
    let now = first;
    for (let before: typeof now | undefined; !before || isOther(before, now); ) {
      await new Promise((resolve) => setTimeout(resolve, pace.settledMs).unref());
      if (isClosed) return;
      before = now;
      now = await statesOf(files());
    }
    if (isClosed) return;
    // Compares with `now`, so changes during `onChange` count. New files start with their current state.
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

/** Returns true if a known file has changed. A file that is watched for the first time does not count as changed. */
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
          : "missing";
        return [file, state] as const;
      }),
    ),
  );
}
