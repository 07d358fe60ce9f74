// The code of the thread that copies the write-ahead log into the file.

/** Input of the thread. */
export interface CheckpointData {
  /** Where it finds the file. */
  readonly href: string;
  /** The file, opened by the event loop, which closes it: to close any descriptor of a file gives up the locks that SQLite has on it. */
  readonly descriptor: number;
  /** Two numbers that are 1 for a time: while it does what it was asked for, and while nothing should be committed. */
  readonly state: Int32Array;
}

/** Its reply to each message. */
export interface CheckpointOutcome {
  readonly error?: string;
  /** The disk has refused to keep what was written. */
  readonly isLost?: boolean;
}

/** The thread gets the text of this function, which therefore uses nothing that is around it. */
export function copyLog(): void {
  const { fdatasyncSync } = process.getBuiltinModule("node:fs");
  const { DatabaseSync } = process.getBuiltinModule("node:sqlite");
  const { parentPort, workerData } = process.getBuiltinModule("node:worker_threads");
  const { href, descriptor, state } = workerData as CheckpointData;
  const [WORKING, QUIET] = [0, 1];
  const SQLITE_IOERR_FSYNC = 1034;
  /** Each copies what was committed during the one before. */
  const PASSES = 3;
  let file: InstanceType<typeof DatabaseSync> | undefined;

  function copy(): CheckpointOutcome {
    try {
      file ??= open();
      if (copyWith(file)) return {};
      // SQLite flushes the file only when it has copied everything. The quiet that follows has less to wait for.
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

  /** True if nothing was committed meanwhile. Then all is copied and flushed. */
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
    // The last connection that closes deletes the log if it can flush it. It must not be this one: a failure of the disk is reported
    // once to each who has the file open.
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
