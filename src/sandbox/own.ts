// Types of backend that plugins bring: one `Backend` for each owner and name, made on first use and kept until it is stopped.

import { z } from "zod";
import type { Backend } from "../agent/core/backend.ts";
import { AppError } from "../agent/core/errors.ts";
import type { Owner } from "../protocol/ids.ts";
import { type BackendDefinition, type BackendKey, commonOptions } from "./definition.ts";

/** A backend that may hold something open. */
export type OwnBackend = Backend & { close?(): Promise<void> };

/** What every backend may be configured with. */
export interface CommonOptions {
  readonly name?: string | undefined;
  /** Where the agent sees its files. */
  readonly workdir: string;
  /** Seconds that a command may take. */
  readonly timeout: number;
}

export interface OwnBackendType<S extends z.ZodObject = z.ZodObject> {
  /** The keys beside `type`, `name`, `workdir` and `timeout`, which every backend has. */
  readonly options: S;
  /** Called once for each owner and name until it is stopped; what it throws is shown to the user as `backend_failed`. */
  create(options: z.output<S> & CommonOptions, place: BackendKey): OwnBackend | Promise<OwnBackend>;
}

/** Hides the type of the options, so that all types fit one map. */
export function defineBackend<S extends z.ZodObject>({ options, create }: OwnBackendType<S>): OwnBackendType {
  return { options, create: (given, place) => create(given as z.output<S> & CommonOptions, place) };
}

type Options = CommonOptions & Record<string, unknown>;

/** `type` as the pool knows it. */
export function ownBackend(type: string, { options, create }: OwnBackendType) {
  const all = z.strictObject({ ...options.shape, ...commonOptions, type: z.literal(type) });
  return { type, options: all, open: () => driver(create) } satisfies BackendDefinition<z.output<typeof all>>;
}

function driver(create: OwnBackendType["create"]) {
  const open = new Map<string, Promise<OwnBackend>>();
  let isClosed = false;
  const keyOf = ({ owner, name }: BackendKey) => JSON.stringify([owner.tenant, owner.user, name]);
  const obtain = (options: Options, place: BackendKey): Promise<OwnBackend> => {
    if (isClosed) throw new AppError("shutting_down", "The server is stopping; no workspace is opened.");
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
  throw new AppError("backend_failed", `The backend could not be made: ${why}`, { cause: error });
}
