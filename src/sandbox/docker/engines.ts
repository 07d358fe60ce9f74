// The engines of a deployment. A sandbox stays on the engine that the ledger records for it, because its files are there.

import { AppError } from "../../agent/core/errors.ts";
import { serially, sharedFor } from "../../lib/async.ts";
import type { BackendServices, EngineCheck } from "../definition.ts";
import type { Sandbox, SandboxRecord } from "../sandbox-records.ts";
import { type Host, type LazyHost, lazyHost } from "./host.ts";
import { deploymentOf } from "./identity.ts";

/** What a caller knows of a sandbox before it has an engine. */
export type Unplaced = Omit<Sandbox, "engine">;

export interface Engines {
  /** The name of this deployment. Needs no engine. */
  deployment(): Promise<string>;
  /** Throws `unavailable` while the engine is unreachable, or when the settings do not name it. */
  host(name: string): Promise<Host>;
  /** The engine with the sandbox's files; where there is one engine only, that. Undefined when none is known. */
  find(id: string): Promise<Host | undefined>;
  /**
   * Where to enter the sandbox in the ledger: its engine, or for a new one the one that has most room. `work` enters it.
   * New ones take turns, so that each sees those before it.
   */
  enter<T>(sandbox: Unplaced, work: (host: Host, sandbox: Sandbox) => Promise<T>): Promise<T>;
  /** Where a sandbox would be made now. Undefined when no engine takes any. */
  place(): Promise<Host | undefined>;
  /** Whether it gives its sandboxes away. */
  isDraining(name: string): boolean;
  /** Asks all engines. Never rejects: what keeps one from being used is given to `onAway`. */
  reachable(onAway: (name: string, error: unknown) => void): Promise<Host[]>;
  /** Throws `unavailable` while none can be reached. */
  ping(): Promise<void>;
  /** Each, where there are several. */
  readonly checks: readonly EngineCheck[];
}

/** How long an engine is taken to be up or away when a place is chosen, and how long its answer may take, in ms. */
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
  if (!first) throw new AppError("config_invalid", "`backends.docker.engines` names no engine.");
  /** It needs no search: there is no other place. */
  const sole = engines.length === 1 && !first.settings.drain ? first : undefined;
  const inTurn = serially();

  const host = async (name: string): Promise<Host> => {
    const engine = engines.find(({ settings }) => settings.name === name);
    if (engine) return engine.getHost();
    logger.warn({ engine: name }, "a sandbox is on an engine that the settings do not name");
    throw new AppError(
      "unavailable",
      "The files of this workspace are on a Docker engine that is not in the settings of this server at present. Ask its operator.",
    );
  };

  /** For a ledger that does not outlive its process: the files may exist although no record does. */
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
    throw new AppError("unavailable", "No Docker engine accepts new workspaces at present. Try again later.");
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
  /** Whether it did so within the last second. */
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

/** What a new sandbox is placed by. */
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
