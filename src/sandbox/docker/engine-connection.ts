// Connects to a Docker engine, with an address, certificates, and a deadline for every call. A call may never return.
// For example, inspecting a wedged container can hang. A refused call throws an `EngineError` with its HTTP status.
// The status is 0 if the engine is unreachable or silent.

import type Dockerode from "dockerode";
import { AppError } from "../../agent/core/errors.ts";
import { isLoopback } from "../../lib/hosts.ts";
import { readTls, type TlsFiles } from "../../lib/tls-files.ts";
import type { EngineSettings } from "../definition.ts";
import { EngineError, toEngineError } from "./engine-error.ts";

type Address = Pick<EngineSettings, "host" | "tls">;

/** Calls the engine. Aborts the call after `ms` milliseconds or when `signal` aborts. */
export type EngineCall = <T>(
  signal: AbortSignal | undefined,
  ms: number,
  work: (docker: Dockerode, abortSignal: AbortSignal) => Promise<T>,
) => Promise<T>;

/**
 * Loads the client and its certificates on the first call. Does not keep a connection open, so nothing needs
 * to be closed.
 */
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
    // The host is explicitly undefined, because the client would otherwise use a host from its environment.
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

/** True if the engine is reached over a network without TLS. Others on that network can read the traffic and send commands. */
export function isOpenToNetwork({ host, tls }: Address): boolean {
  const { protocol, host: name = "" } = addressOf(host);
  return protocol === "http" && !tls && !isLoopback(name.replace(/^\[|\]$/g, ""));
}

async function certificatesOf(files: TlsFiles): Promise<Dockerode.DockerOptions> {
  const read = await readTls(files);
  if ("value" in read) return { ...read.value, protocol: "https" };
  throw new AppError(
    "config_invalid",
    `Cannot use the certificates for a Docker engine: ${read.problems.join("; ")}.`,
  );
}

function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
}
