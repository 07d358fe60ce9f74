// The code of the worker thread that copies the write-ahead log into the database file.

/** Input of the thread. */
export interface CheckpointData {
  /** The URL of the file. */
  readonly href: string;
  /**
   * The file's descriptor. The event loop opens and closes it, because closing any descriptor of a file releases
   * SQLite's locks on the file.
   */
  readonly descriptor: number;
  /**
   * Two flags. The first flag is 1 while the thread is working, and the second is 1 while nothing should be committed.
   */
  readonly state: Int32Array;
}

/** The thread's reply to each message. */
export interface CheckpointOutcome {
  readonly error?: string;
  /** True if the disk refused to store data. */
  readonly isLost?: boolean;
}

/** The thread receives the source text of this function, which therefore cannot use anything outside itself. */
export function copyLog(): void {
  const { fdatasyncSync } = process.getBuiltinModule("node:fs");
  const { DatabaseSync } = process.getBuiltinModule("node:sqlite");
  const { parentPort, workerData } = process.getBuiltinModule("node:worker_threads");
  const { href, descriptor, state } = workerData as CheckpointData;
  const [WORKING, QUIET] = [0, 1];
  const SQLITE_IOERR_FSYNC = 1034;
  /** The number of passes. Each pass copies what was committed during the previous pass. */
  const PASSES = 3;
  let file: InstanceType<typeof DatabaseSync> | undefined;

  function copy(): CheckpointOutcome {
    try {
      file ??= open();
      if (copyWith(file)) return {};
      // SQLite flushes the file only after it has copied everything. This flush shortens the quiet period that follows.
      fdatasyncSync(descriptor);
      Atomics.store(state, QUIET, 1);
      copyWith(file);
      return {};
    } catch (error) {
      return outcomeOf(error);
    } finally {
      Atomics.store(state, QUIET, 0);
    }
  }

  function open(): InstanceType<typeof DatabaseSync> {
    const opened = new DatabaseSync(new URL(href));
    opened.exec("PRAGMA synchronous = NORMAL");
    return opened;
  }

  /** Returns true if nothing was committed in the meantime. All data is then copied and flushed. */
  function copyWith(connection: InstanceType<typeof DatabaseSync>): boolean {
    const checkpoint = connection.prepare("PRAGMA wal_checkpoint(PASSIVE)");
    let before: unknown;
    for (let pass = 0; pass < PASSES; pass++) {
      const pages = checkpoint.get()?.log;
      if (pages === before) return true;
      before = pages;
    }
    return false;
  }

  function outcomeOf(error: unknown): CheckpointOutcome {
    const { message, code, errcode } = Object(error);
    const isLost = code !== "ERR_SQLITE_ERROR" || errcode === SQLITE_IOERR_FSYNC;
    // The last connection to close deletes the log if it can flush it. This connection must not be the last, because
    // the system reports a disk failure only once per open file.
    if (isLost) file?.close();
    return { error: String(message), isLost };
  }

  parentPort?.on("message", () => {
    const outcome = copy();
    Atomics.store(state, WORKING, 0);
    Atomics.notify(state, WORKING);
    parentPort.postMessage(outcome);
  });
}
