// The primary process of `skein serve --workers N`: listens on the port, starts and restarts the workers, and forwards
// signals. It opens no store.

import cluster from "node:cluster";
import { setTimeout as delay } from "node:timers/promises";
import type { Logger } from "../../../lib/logger.ts";
import { PROCESS_ID } from "../../../lib/process-id.ts";
import type { ServerConfig } from "../../../server/config/server.ts";
import { createLogger } from "../../app/logger.ts";
import { HANGS_AFTER, type Stop, type StopRequest, stopRequest } from "../signals.ts";
import { bannerOf, closingNotice } from "./banner.ts";
import { type Door, openDoor } from "./door.ts";
import { forkWorker, type Life } from "./life.ts";
import type { PrimaryMethods } from "./protocol.ts";
import { createStandby } from "./standby.ts";

/** Returns the exit code after a signal has stopped the server, or if no worker can be started. */
export async function serveWithWorkers(config: ServerConfig): Promise<number> {
  // Each worker has about one processor. With more garbage collection threads, it would use other workers' processors.
  cluster.setupPrimary({ execArgv: [...process.execArgv, "--v8-pool-size=1"] });
  const logger = createLogger(config);
  const door = await openDoor(config.listen, createStandby(), logger);
  const workers = createWorkers(config, door, logger);
  const stop = stopRequest();
  const stopped = stop.first.then((signal) => ({ signal }));
  // As in a single process, SIGHUP at a terminal means that the terminal was closed.
  if (!process.stdout.isTTY) process.on("SIGHUP", workers.reload);
  const started = await Promise.race([workers.start(), workers.failed, stopped]);
  if ("isReady" in started) process.stdout.write(bannerOf(config, door.address));
  const end = "isReady" in started ? await Promise.race([workers.failed, stopped]) : started;
  if ("signal" in end) {
    logger.info(end, "shutting down");
    process.stdout.write(closingNotice(end.signal));
  }
  const code = await workers.stop("signal" in end ? end.signal : "SIGTERM", stop);
  door.close();
  return "code" in end ? end.code : code;
}

/** A slot for a worker process. When the process ends, another process takes over its slot. */
interface WorkerSlot {
  readonly number: number;
  /** Resolves once the first process of this slot accepts requests. */
  readonly serving: PromiseWithResolvers<void>;
  life?: Life | undefined;
}

/** The maximum time for a worker to return its metrics, in ms. */
const METRICS_MS = 2_000;

function createWorkers({ workers: count, shutdown }: ServerConfig, door: Door, logger: Logger) {
  const places: readonly WorkerSlot[] = Array.from({ length: count }, (_, index) => ({
    number: index + 1,
    serving: Promise.withResolvers<void>(),
  }));
  /** Each promise resolves with true if the last process in its slot ended normally. */
  const kept: Promise<boolean>[] = [];
  const failed = Promise.withResolvers<{ readonly code: number }>();
  const stopping = new AbortController();
  let isFirst = true;
  let failedStarts = 0;
  let oneUser: string | undefined;

  const lives = () => places.flatMap(({ life }) => life ?? []);
  const serving = () => lives().filter(({ isServing }) => isServing());

  const answersFor = (place: WorkerSlot): PrimaryMethods => ({
    serves() {
      failedStarts = 0;
      if (place.life) door.admit(place.life);
      place.serving.resolve();
    },
    leaves: () => place.life && door.dismiss(place.life),
    async metricsOfOthers(format) {
      const others = serving().filter((life) => life !== place.life);
      const read = others.map(({ pid, calls }) =>
        calls.ask("metrics", format, AbortSignal.timeout(METRICS_MS)).catch((err: unknown) => {
          logger.warn({ worker_pid: pid, err }, "the metrics of a worker are missing: it does not answer");
          return [];
        }),
      );
      return (await Promise.all(read)).flat();
    },
    isOneUser(owner) {
      oneUser ??= owner;
      return oneUser === owner;
    },
  });

  async function keep(place: WorkerSlot): Promise<boolean> {
    for (let short = 0; ; ) {
      const startedAt = performance.now();
      const seat = { number: place.number, server: PROCESS_ID, address: door.address };
      place.life = forkWorker(seat, answersFor(place), logger);
      const { pid, isServing, ended } = place.life;
      const { code, signal } = await ended;
      door.dismiss(place.life);
      place.life = undefined;
      if (stopping.signal.aborted) return code === 0 || (!isServing() && signal !== "SIGKILL");
      if (!isServing()) failedStarts++;
      if (givesUp({ isFirst, failed: failedStarts, serving: serving().length })) {
        failed.resolve({ code: code || 1 });
        return false;
      }
      short = shortLives(short, performance.now() - startedAt);
      const isLast = serving().length === 0;
      const restart_ms = isLast && isServing() ? 0 : delayAfter(short);
      const details = { worker: place.number, worker_pid: pid, code, signal, restart_ms };
      logger.error(details, "a worker ended and is started again; the others continue its runs");
      await delay(restart_ms, undefined, { signal: stopping.signal }).catch(() => {});
      if (stopping.signal.aborted) return true;
    }
  }

  return {
    /** Resolves if no worker is left after the start, or at once if the server cannot be started. */
    failed: failed.promise,

    /** Resolves when all workers accept requests. */
    async start() {
      // Starts the first worker alone, because it prepares the store, and so an error is reported only once.
      for (const group of [places.slice(0, 1), places.slice(1)]) {
        for (const place of group) kept.push(keep(place));
        await Promise.all(group.map(({ serving }) => serving.promise));
      }
      isFirst = false;
      return { isReady: true };
    },

    reload() {
      // A worker that is still starting will read the file anyway, and SIGHUP would end it.
      for (const { kill } of serving()) kill("SIGHUP");
    },

    /**
     * Returns the exit code once all workers have ended. Kills hanging workers after a time limit, and all workers
     * after a second signal.
     */
    async stop(name: Stop, request: StopRequest): Promise<number> {
      stopping.abort();
      const killAll = () => {
        for (const { kill } of lives()) kill("SIGKILL");
      };
      request.onSecond = killAll;
      const timer = setTimeout(killAll, shutdown.grace + HANGS_AFTER + 1_000);
      for (const { kill } of lives()) kill(name);
      const areWell = await Promise.all(kept);
      clearTimeout(timer);
      return areWell.every(Boolean) ? 0 : 1;
    },
  };
}

/** The lifetime after which a worker counts as started successfully, in ms. */
const LONG_LIFE = 60_000;
const FIRST_DELAY = 500;
const LONGEST_DELAY = 30_000;
/** The maximum number of consecutive failed starts while no worker is serving. */
const MOST_FAILURES = 5;

/** Returns how many consecutive processes in a slot were short-lived, including one that lived for `livedMs`. */
export const shortLives = (before: number, livedMs: number): number => (livedMs < LONG_LIFE ? before + 1 : 0);

/** Returns the delay before the next start, in ms. */
export const delayAfter = (lives: number): number =>
  lives === 0 ? 0 : Math.min(LONGEST_DELAY, FIRST_DELAY * 2 ** (lives - 1));

export interface Starts {
  /** True until the server has served with all its workers. */
  readonly isFirst: boolean;
  /** The number of failed starts since the last success. */
  readonly failed: number;
  /** The number of workers that are serving now. */
  readonly serving: number;
}

/**
 * While other workers serve, there is no limit to failed starts, because a service that they need may be down for some
 * time.
 */
export const givesUp = ({ isFirst, failed, serving }: Starts): boolean =>
  failed > 0 && (isFirst || (serving === 0 && failed >= MOST_FAILURES));
