// How a Docker engine is reached: its address, its certificates, and a deadline for every call, because an engine may never
// answer: even inspecting a wedged container can hang. A refusal is an `EngineError` with its HTTP status; an engine that is
// unreachable or silent is one with status 0.

import type Dockerode from "dockerode";
import { AppError } from "../../agent/core/errors.ts";
import { isLoopback } from "../../lib/hosts.ts";
import { readTls, type TlsFiles } from "../../lib/tls-files.ts";
import type { EngineSettings } from "../definition.ts";
import { EngineError, toEngineError } from "./engine-error.ts";

type Address = Pick<EngineSettings, "host" | "tls">;

/** Calls the engine, and ends the call after `ms` or with `signal`. */
export type EngineCall = <T>(
  signal: AbortSignal | undefined,
  ms: number,
  work: (docker: Dockerode, abortSignal: AbortSignal) => Promise<T>,
) => Promise<T>;

/** Loads the client and its certificates at the first call. Keeps nothing open, so there is nothing to close. */
export function engineCalls({ host, tls }: Address): EngineCall {
  let client: Promise<Dockerode> | undefined;
  const open = async () => {
    const { default: Client } = await import("dockerode");
    return new Client({ ...addressOf(host), ...(tls ? await certificatesOf(tls) : {}) });
  };
  const docker = () => {
    client ??= open().catch((error: unknown) => {
      client = undefined;
      throw error;
    });
    return client;
  };

  return async (signal, ms, work) => {
    const abort = new AbortController();
    const onAbort = () => abort.abort(signal?.reason);
    const timer = setTimeout(() => abort.abort(new EngineError(0, "it does not answer")), ms);
    signal?.addEventListener("abort", onAbort, { once: true });
    if (signal?.aborted) onAbort();
    try {
      const opened = await docker();
      abort.signal.throwIfAborted();
      // Some calls do not end when they are aborted.
      return await Promise.race([work(opened, abort.signal), aborted(abort.signal)]);
    } catch (error) {
      signal?.throwIfAborted();
      throw toEngineError(abort.signal.aborted ? abort.signal.reason : error);
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener("abort", onAbort);
    }
  };
}

function addressOf(host: string | undefined): Dockerode.DockerOptions {
  if (host === undefined) return {};
  const url = URL.canParse(host) ? new URL(host) : undefined;
  if (url?.protocol === "unix:" || host.startsWith("/"))
    // Set to undefined, because the client otherwise uses a host from its environment.
    return { socketPath: url ? url.pathname : host, host: undefined } as Dockerode.DockerOptions;
  if (url && ["tcp:", "http:", "https:"].includes(url.protocol)) {
    const isTls = url.protocol === "https:" || url.port === "2376";
    return { host: url.hostname, port: url.port || "2375", protocol: isTls ? "https" : "http" };
  }
  throw new AppError(
    "config_invalid",
    `\`${host}\` is not the address of a Docker engine: use unix:///… or tcp://….`,
  );
}

/** Whether it is reached over a network without TLS: others can read what is sent to it, and send commands themselves. */
export function isOpenToNetwork({ host, tls }: Address): boolean {
  const { protocol, host: name = "" } = addressOf(host);
  return protocol === "http" && !tls && !isLoopback(name.replace(/^\[|\]$/g, ""));
}

async function certificatesOf(files: TlsFiles): Promise<Dockerode.DockerOptions> {
  const read = await readTls(files);
  if ("value" in read) return { ...read.value, protocol: "https" };
  throw new AppError("config_invalid", `The certificates of a Docker engine: ${read.problems.join("; ")}.`);
}

function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
}
