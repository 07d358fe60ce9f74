// The engines of a deployment. A sandbox stays on the engine that the ledger records for it, because its files are
// there.

import { AppError } from "../../agent/core/errors.ts";
import { serially, sharedFor } from "../../lib/async.ts";
import type { BackendServices, EngineCheck } from "../definition.ts";
import type { Sandbox, SandboxRecord } from "../sandbox-records.ts";
import { type Host, type LazyHost, lazyHost } from "./host.ts";
import { deploymentOf } from "./identity.ts";

/** A sandbox that has no engine yet. */
export type UnplacedSandbox = Omit<Sandbox, "engine">;

export interface Engines {
  /** Returns the deployment's name. Does not need an engine. */
  deployment(): Promise<string>;
  /** Returns an engine. Throws `unavailable` if the engine is unreachable or not in the settings. */
  host(name: string): Promise<Host>;
  /** Returns the engine that has the sandbox's files, or undefined if no engine is known to have them. */
  find(id: string): Promise<Host | undefined>;
  /**
   * Calls `work` to enter the sandbox in the ledger: on its own engine, or on the engine that `place` chooses for a new
   * sandbox. New sandboxes are entered one at a time, so each entry takes the earlier ones into account.
   */
  enter<T>(sandbox: UnplacedSandbox, work: (host: Host, sandbox: Sandbox) => Promise<T>): Promise<T>;
  /**
   * Returns the engine that a new sandbox would be placed on now, or undefined if no engine accepts new
   * sandboxes.
   */
  place(): Promise<Host | undefined>;
  /** True if the settings drain the engine, which moves its sandboxes to other engines. */
  isDraining(name: string): boolean;
  /**
   * Pings all engines and returns the hosts that answer. Never rejects, but calls `onAway` with the error of every other
   * engine.
   */
  reachable(onAway: (name: string, error: unknown) => void): Promise<Host[]>;
  /** Throws `unavailable` if no engine can be reached. */
  ping(): Promise<void>;
  /** One check per engine, if the deployment has more than one engine. */
  readonly checks: readonly EngineCheck[];
}

/** How long a ping result stays valid for choosing an engine, and the deadline of a ping, in milliseconds. */
const FRESH_MS = 1000;
const PING_MS = 3000;

export function openEngines(services: BackendServices): Engines {
  const { dataDir, docker, sandboxes: ledger, logger } = services;
  let named: Promise<string> | undefined;
  const deployment = () => {
    named ??= docker.deployment === undefined ? deploymentOf(dataDir) : Promise.resolve(docker.deployment);
    return named.catch((error: unknown) => {
      named = undefined;
      throw error;
    });
  };
  const engines = docker.engines.map((settings) => pinged(lazyHost(services, settings, deployment)));
  const [first] = engines;
  if (!first)
    throw new AppError("config_invalid", "`backends.docker.engines` is empty. Name at least one engine.");
  /** If only one engine exists, no search is needed. */
  const sole = engines.length === 1 && !first.settings.drain ? first : undefined;
  const inTurn = serially();

  const host = async (name: string): Promise<Host> => {
    const engine = engines.find(({ settings }) => settings.name === name);
    if (engine) return engine.getHost();
    logger.warn({ engine: name }, "a sandbox is on an engine that the settings do not name");
    throw new AppError(
      "unavailable",
      "The files of this workspace are on a Docker engine that this server's settings do not name. Ask the operator.",
    );
  };

  /** Searches the engines themselves, because a ledger in memory may not have a record of existing files. */
  const lookFor = async (id: string): Promise<Host | undefined> => {
    const hosts = await reachable(() => {});
    const found = await Promise.all(
      hosts.map(async (each) => ((await each.engine.inspectVolume(id).catch(() => undefined)) ? [each] : [])),
    );
    return found.flat()[0];
  };

  const find = async (id: string): Promise<Host | undefined> => {
    const record = await ledger.get(id);
    if (record) return host(record.engine);
    return sole ? sole.getHost() : lookFor(id);
  };

  const place = async (): Promise<Host | undefined> => {
    if (sole) return sole.getHost();
    const [records, isUp] = await Promise.all([
      ledger.list(),
      Promise.all(engines.map(({ answers }) => answers())),
    ]);
    const name = placeNew(
      engines.map((each, at) => loadOf(each, isUp[at] ?? false, records, docker.caps.total)),
    );
    return name === undefined ? undefined : host(name);
  };

  const placed = async (): Promise<Host> => {
    const host = await place();
    if (host) return host;
    throw new AppError("unavailable", "No Docker engine is accepting new workspaces. Try again later.");
  };

  const reachable: Engines["reachable"] = async (onAway) => {
    const hosts = engines.map(async (each) => {
      try {
        await each.ping();
        return [await each.getHost()];
      } catch (error) {
        onAway(each.settings.name, error);
        return [];
      }
    });
    return (await Promise.all(hosts)).flat();
  };

  return {
    deployment,
    host,
    find,
    place,
    isDraining: (name) => engines.some(({ settings }) => settings.name === name && settings.drain === true),
    reachable,
    async enter(sandbox, work) {
      const on = (host: Host) => work(host, { ...sandbox, engine: host.name });
      const known = await find(sandbox.id);
      if (known) return on(known);
      return inTurn("new", async () => on(await placed()));
    },
    async ping() {
      const failures = await Promise.all(
        engines.map(({ ping }) =>
          ping().then(
            () => [],
            (error: unknown) => [error],
          ),
        ),
      );
      if (failures.every(([error]) => error !== undefined)) throw failures[0]?.[0];
    },
    checks: engines.length === 1 ? [] : engines.map(({ settings, ping }) => ({ name: settings.name, ping })),
  };
}

interface PingedHost extends Omit<LazyHost, "ping"> {
  ping(): Promise<void>;
  /** True if the engine answered within the last second. */
  answers(): Promise<boolean>;
}

function pinged(engine: LazyHost): PingedHost {
  const ping = () => engine.ping(PING_MS);
  const isUp = () =>
    ping().then(
      () => true,
      () => false,
    );
  return { ...engine, ping, answers: sharedFor(FRESH_MS, isUp) };
}

function loadOf(
  { settings: { name, drain = false, sandboxes } }: PingedHost,
  isUp: boolean,
  records: readonly SandboxRecord[],
  usual: number,
) {
  const own = records.filter(({ engine }) => engine === name);
  const running = own.filter(({ state }) => state === "running" || state === "ending").length;
  return { name, isUp, isDraining: drain, capacity: sandboxes ?? usual, running, sandboxes: own.length };
}

/** The load of an engine, which decides where new sandboxes are placed. */
export interface EngineLoad {
  readonly name: string;
  readonly isUp: boolean;
  readonly isDraining: boolean;
  /** The maximum number of sandboxes that run at once. */
  readonly capacity: number;
  readonly running: number;
  /** The number of sandboxes with files on the engine, running or not. */
  readonly sandboxes: number;
}

/**
 * Chooses among the engines that are up and not draining. Engines with room for one more running sandbox come first,
 * followed by the engine with the fewest sandboxes relative to its capacity, and then by name. Returns undefined if
 * no engine qualifies.
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
