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

/** A file system's clock may be behind the system's clock by this, in ms. */
const CLOCK_MS = 50;

interface FileState {
  /** Differs after each change. */
  readonly version: string;
  /** In ms since 1970. */
  readonly changedAt: number;
}

const MISSING: FileState = { version: "missing", changedAt: 0 };
/** The state of an added file that `onChange` may have read before its last change. */
const UNKNOWN: FileState = { version: "unknown", changedAt: 0 };

type FileStates = ReadonlyMap<string, FileState>;

export interface FileWatch {
  close(): void;
}

/**
 * Calls `onChange` once for changes that happen together, and never concurrently. `onChange` must not throw. Each poll
 * calls `files`. Creating and deleting a file count as changes. If `files` returns a new file after `onChange`, its
 * changes during `onChange` count. The first poll starts at once; changes before it are not reported.
 */
export function watchFiles(
  files: () => readonly string[],
  onChange: () => Promise<void>,
  pace: Pace,
): FileWatch {
  let isClosed = false;
  let timer: NodeJS.Timeout | undefined;
  const again = (known: FileStates, ms: number) => {
    if (isClosed) return;
    timer = setTimeout(() => void look(known), ms).unref();
  };

  async function look(known: FileStates): Promise<void> {
    const now = await statesOf(files());
    if (!isOther(known, now)) return again(now, pace.everyMs);
    await settled(now);
  }

  /** Waits until the files are no longer being written, then reports the change. */
  async function settled(first: FileStates): Promise<void> {
    let now = first;
    for (let before: typeof now | undefined; !before || isOther(before, now); ) {
      await new Promise((resolve) => setTimeout(resolve, pace.settledMs).unref());
      if (isClosed) return;
      before = now;
      now = await statesOf(files());
    }
    if (isClosed) return;
    // Compares with `now`, so changes during `onChange` count.
    const began = Date.now() - CLOCK_MS;
    await onChange();
    const added = [...(await statesOf(files()))].map(
      ([file, state]) => [file, state.changedAt < began ? state : UNKNOWN] as const,
    );
    again(new Map([...added, ...now]), pace.everyMs);
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
function isOther(before: FileStates, now: FileStates): boolean {
  return [...now].some(([file, { version }]) => (before.get(file)?.version ?? version) !== version);
}

async function statesOf(files: readonly string[]): Promise<FileStates> {
  return new Map(
    await Promise.all(
      files.map(async (file) => {
        const found = await stat(file, { bigint: true }).catch(() => undefined);
        if (!found) return [file, MISSING] as const;
        const version = [found.dev, found.ino, found.size, found.mtimeNs, found.ctimeNs].join();
        return [file, { version, changedAt: Number(found.ctimeMs) }] as const;
      }),
    ),
  );
}
