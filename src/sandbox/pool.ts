// The backends of this process: one per owner and name, created on first use.

import { z } from "zod";
import type { Backend, BackendConfig, BackendPool, BackendStatus } from "../agent/core/backend.ts";
import { AppError, messageOf } from "../agent/core/errors.ts";
import { countsOf } from "../agent/core/shares.ts";
import type { Owner } from "../protocol/ids.ts";
import type { BackendDriver, BackendKey, BackendServices, BackendState, EngineCheck } from "./definition.ts";
import { type BackendOptions, withOwnBackends } from "./index.ts";
import type { OwnBackendType } from "./own.ts";

export interface PoolOptions extends Omit<BackendServices, "onState"> {
  /** Called when a backend's status changes. */
  readonly onStatus: (owner: Owner, status: BackendStatus) => void;
  /**
   * The maximum number of backends. At the limit, `get` stops the least recently used idle backend of the tenant with
   * the most backends. Throws `unavailable` if no backend is idle.
   */
  readonly maxBackends?: number;
  /** The backend types from plugins, by name. */
  readonly own?: Readonly<Record<string, OwnBackendType>>;
}

type Options = z.output<typeof BackendOptions>;

/** The owner and configuration of a requested backend. */
interface BackendRequest {
  readonly key: string;
  readonly place: BackendKey;
  readonly options: Options;
}

interface Entry extends BackendRequest {
  readonly backend: Promise<Backend>;
  /** The state until the backend is created. After that, the driver provides the state. */
  making: BackendState | undefined;
}

export interface ProcessBackends extends BackendPool {
  /**
   * Starts managing processes that earlier servers left running for these types, and includes the types in
   * `ping`.
   */
  begin(types: readonly string[]): void;
  /** The engines of the backend types that run on several engines. */
  readonly engines: readonly EngineCheck[];
}

const MAX_BACKENDS = 1000;

export function createBackendPool(options: PoolOptions): ProcessBackends {
  const { maxBackends = MAX_BACKENDS, onStatus, own = {}, ...services } = options;
  const { definitions, options: schema } = withOwnBackends(own);
  const read = (owner: Owner, config: BackendConfig) => requestFor(schema, owner, config);
  /** The backends, least recently used first. */
  const entries = new Map<string, Entry>();
  const begun = new Set<BackendDriver<Options>>();
  let isClosed = false;

  const onState = (place: BackendKey, state: BackendState) => {
    const entry = entries.get(keyOf(place));
    if (entry) onStatus(place.owner, statusOf(entry, state));
  };
  const drivers = new Map<string, BackendDriver<Options>>(
    definitions.map((definition) => [definition.type, definition.open({ ...services, onState })]),
  );
  const driverOf = ({ options }: Pick<BackendRequest, "options">): BackendDriver<Options> => {
    const driver = drivers.get(options.type);
    if (!driver) throw new AppError("config_invalid", `There is no backend of type \`${options.type}\`.`);
    return driver;
  };

  const obtain = (request: BackendRequest): Entry => {
    const known = entries.get(request.key);
    if (known && known.making?.status !== "error" && isSame(known.options, request.options)) return known;
    if (!known && entries.size >= maxBackends) makeRoom();
    const entry: Entry = {
      ...request,
      backend: driverOf(request).create(request.options, request.place),
      making: { status: "starting" },
    };
    entry.backend.then(
      () => {
        entry.making = undefined;
      },
      (error: unknown) => {
        entry.making = { status: "error", error: messageOf(error) };
        // The entry is removed, so an owner whose backend was refused does not count towards the maximum.
        const isRefused = error instanceof AppError && error.code === "backend_refused";
        if (isRefused && entries.get(entry.key) === entry) entries.delete(entry.key);
      },
    );
    return entry;
  };

  const makeRoom = () => {
    const isIdle = (entry: Entry) =>
      entry.making?.status !== "starting" && !driverOf(entry).isBusy(entry.place);
    const counts = countsOf(entries.values().map(tenantOf));
    // The sort is stable, so within a tenant, the least recently used backend comes first.
    const byHolder = [...entries.values()].sort(
      (a, b) => (counts.get(tenantOf(b)) ?? 0) - (counts.get(tenantOf(a)) ?? 0),
    );
    const idle = byHolder.find(isIdle);
    if (!idle)
      throw new AppError("unavailable", `All ${maxBackends} workspaces are in use. Try again later.`);
    entries.delete(idle.key);
    driverOf(idle)
      .stop(idle.place)
      .catch(() => {});
  };

  const get = async (owner: Owner, config: BackendConfig): Promise<Backend> => {
    if (isClosed) throw new AppError("shutting_down", "The server is stopping and does not open workspaces.");
    const entry = obtain(read(owner, config));
    entries.delete(entry.key);
    entries.set(entry.key, entry);
    return entry.backend;
  };

  const status = async (owner: Owner, config: BackendConfig): Promise<BackendStatus> => {
    const request = read(owner, config);
    const making = entries.get(request.key)?.making;
    return statusOf(request, making ?? (await driverOf(request).state(request.options, request.place)));
  };

  return {
    get,
    status,
    async start(owner, config) {
      await get(owner, config);
      const { options, place } = read(owner, config);
      await driverOf({ options }).ready(options, place);
      return status(owner, config);
    },
    async stop(owner, config) {
      const request = read(owner, config);
      const entry = entries.get(request.key);
      await entry?.backend.catch(() => {});
      await driverOf(request).stop(request.place);
      if (entry && entries.get(request.key) === entry) entries.delete(request.key);
      return status(owner, config);
    },
    async erase(owner) {
      const own = [...entries].filter(([, { place }]) => isOf(owner, place));
      for (const [key, entry] of own) {
        await entry.backend.catch(() => {});
        entries.delete(key);
      }
      const counts = await Promise.all([...drivers.values()].map((driver) => driver.erase(owner)));
      return counts.reduce((sum, count) => sum + count, 0);
    },
    begin(types) {
      for (const type of types) {
        const driver = drivers.get(type);
        if (!driver || begun.has(driver)) continue;
        begun.add(driver);
        driver.begin();
      }
    },
    engines: [...drivers.values()].flatMap(({ engines = [] }) => engines),
    async ping() {
      await Promise.all([...begun].map((driver) => driver.ping()));
    },
    async close() {
      isClosed = true;
      await Promise.all(drivers.values().map((driver) => driver.close()));
    },
  };
}

/** Parses a configuration. Throws `config_invalid`. The owner's agents that do not name a backend share one backend. */
function requestFor(schema: typeof BackendOptions, owner: Owner, config: BackendConfig): BackendRequest {
  const parsed = schema.safeParse(config);
  if (!parsed.success)
    throw new AppError(
      "config_invalid",
      `The backend's configuration is invalid: ${z.prettifyError(parsed.error)}`,
    );
  const options = parsed.data;
  const place = { owner, name: options.name ?? "default" };
  return { key: keyOf(place), place, options };
}

const isOf = ({ tenant, user }: Owner, { owner }: BackendKey) =>
  owner.tenant === tenant && owner.user === user;

const tenantOf = ({ place }: Entry) => place.owner.tenant;

const keyOf = ({ owner, name }: BackendKey) => JSON.stringify([owner.tenant, owner.user, name]);

const statusOf = (
  { place, options: { type, workdir } }: BackendRequest,
  state: BackendState,
): BackendStatus => ({
  name: place.name,
  type,
  status: state.status,
  workdir,
  ...(state.error === undefined ? {} : { error: state.error }),
});

const isSame = (one: Options, other: Options) => JSON.stringify(one) === JSON.stringify(other);
