// Backend types from plugins: one `Backend` per owner and name, created on first use and kept until stopped.

import { z } from "zod";
import type { Backend } from "../agent/core/backend.ts";
import { AppError } from "../agent/core/errors.ts";
import type { Owner } from "../protocol/ids.ts";
import { type BackendDefinition, type BackendKey, commonOptions } from "./definition.ts";

/** A backend. Implement `close` if it keeps resources open. */
export type OwnBackend = Backend & { close?(): Promise<void> };

/** The options that all backends have. */
export interface CommonOptions {
  readonly name?: string | undefined;
  /** The path where the agent sees its files. */
  readonly workdir: string;
  /** The maximum duration of a command, in seconds. */
  readonly timeout: number;
}

export interface OwnBackendType<S extends z.ZodObject = z.ZodObject> {
  /**
   * The schema of the options in addition to `type`, `name`, `workdir` and `timeout`, which every backend has.
   */
  readonly options: S;
  /** Called once per owner and name until the backend is stopped. If it throws an error, the user sees `backend_failed`. */
  create(options: z.output<S> & CommonOptions, place: BackendKey): OwnBackend | Promise<OwnBackend>;
}

/** Hides the type of the options, so all backend types fit into one map. */
export function defineBackend<S extends z.ZodObject>({ options, create }: OwnBackendType<S>): OwnBackendType {
  return { options, create: (given, place) => create(given as z.output<S> & CommonOptions, place) };
}

type Options = CommonOptions & Record<string, unknown>;

/** Adapts a plugin's backend type to the form that the pool expects. */
export function ownBackend(type: string, { options, create }: OwnBackendType) {
  const all = z.strictObject({ ...options.shape, ...commonOptions, type: z.literal(type) });
  return { type, options: all, open: () => driver(create) } satisfies BackendDefinition<z.output<typeof all>>;
}

function driver(create: OwnBackendType["create"]) {
  const open = new Map<string, Promise<OwnBackend>>();
  let isClosed = false;
  const keyOf = ({ owner, name }: BackendKey) => JSON.stringify([owner.tenant, owner.user, name]);
  const obtain = (options: Options, place: BackendKey): Promise<OwnBackend> => {
    if (isClosed) throw new AppError("shutting_down", "The server is stopping and does not open workspaces.");
    const key = keyOf(place);
    const made = open.get(key) ?? (async () => create(options, place))().catch(notMade);
    open.set(key, made);
    made.catch(() => open.delete(key));
    return made;
  };
  const end = async (key: string): Promise<void> => {
    const ending = open.get(key);
    open.delete(key);
    await (await ending?.catch(() => undefined))?.close?.();
  };
  return {
    begin() {},
    async create(options: Options, place: BackendKey): Promise<Backend> {
      return obtain(options, place);
    },
    async ready(options: Options, place: BackendKey) {
      await obtain(options, place);
    },
    state: async (_: Options, place: BackendKey) =>
      ({ status: open.has(keyOf(place)) ? "running" : "stopped" }) as const,
    isBusy: () => false,
    stop: (place: BackendKey) => end(keyOf(place)),
    async erase(owner: Owner) {
      const start = keyOf({ owner, name: "" }).slice(0, -3);
      const own = [...open.keys()].filter((key) => key.startsWith(start));
      await Promise.all(own.map(end));
      return 0;
    },
    async ping() {},
    async close() {
      isClosed = true;
      await Promise.all([...open.keys()].map(end));
    },
  };
}

function notMade(error: unknown): never {
  if (error instanceof AppError) throw error;
  const why = error instanceof Error ? error.message : String(error);
  throw new AppError("backend_failed", `The backend could not be created: ${why}`, { cause: error });
}
