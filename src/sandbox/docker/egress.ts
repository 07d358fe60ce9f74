// The network of a sandbox that may reach only some hosts. Its container has no network. Programs connect to a port on its
// loopback interface. A relay carries these connections over a stream of the engine to the proxy in this process.

import { setTimeout as sleep } from "node:timers/promises";
import type { RefusedHost } from "../../agent/core/backend.ts";
import { AppError } from "../../agent/core/errors.ts";
import { backoff } from "../../lib/backoff.ts";
import { randomId } from "../../lib/random-id.ts";
import { type Allows, allowing } from "../egress/allowed-hosts.ts";
import type { DialOptions } from "../egress/dial.ts";
import type { Pass } from "../egress/pass.ts";
import { egressProxy } from "../egress/proxy.ts";
import type { Secrets } from "../egress/secrets.ts";
import { openRelay, type Relay } from "../shell/perl/relay.ts";
import type { OpenChannel } from "../shell/session.ts";

/** The port that the relay tries first. */
const PORT = 3128;
/** The maximum number of commands whose background processes can keep using the hosts of their thread. */
const MAX_PASSES = 256;
/** The maximum number of refused targets to report for a command. */
const MAX_REFUSALS = 8;
/**
 * The maximum number of relays to open. If more relays are needed, something keeps ending them, and the sandbox has no
 * network until it is opened again.
 */
const MAX_OPENED = 20;
const RETRY_BACKOFF = { base: 50, cap: 5000 };

/** The network of one command. */
export interface CommandNetwork {
  /** Variables that make programs use the proxy. */
  readonly environment: Readonly<Record<string, string>>;
  /** The targets that the command was not allowed to reach so far, without duplicates. */
  readonly refused: readonly RefusedHost[];
  /**
   * Call this when the command has ended. Processes that it leaves behind can keep using its hosts, but their
   * refusals are no longer collected.
   */
  end(): void;
}

export interface Egress {
  /** Returns the network for a command that may also reach `hosts`. */
  enter(hosts: readonly string[]): CommandNetwork;
  close(): void;
}

export interface EgressOptions {
  readonly hosts: readonly string[];
  readonly dialing: DialOptions;
  /** Opens a channel to a shell that the tenant cannot signal. */
  readonly open: OpenChannel;
  /** The secrets that the proxy sends for the sandbox. */
  readonly secrets?: Secrets | undefined;
  /** Environment variables that are set for every command. */
  readonly environment?: Readonly<Record<string, string>>;
}

/**
 * Opens the network of a sandbox. Throws `backend_failed` if the image has no Perl. The caller closes the
 * network.
 */
export async function openEgress(options: EgressOptions, signal: AbortSignal): Promise<Egress> {
  const closing = new AbortController();
  const usual = allowing(options.hosts);
  const passes = new Map<string, Pass>();
  const none: Pass = { allows: usual, onRefused() {} };
  const serve = egressProxy({
    ...options.dialing,
    passOf: (user) => passes.get(user ?? "") ?? none,
    secrets: options.secrets,
    signal: closing.signal,
  });
  const start = (port: number, until: AbortSignal) =>
    openRelay(options.open, { port, onConnection: serve }, until);

  const first = await start(PORT, signal);
  if (!first)
    throw new AppError(
      "backend_failed",
      "The sandbox has no network: `network.allow` needs an image with Perl, such as one based on Debian.",
    );
  let relay = first;
  const keep = async () => {
    for (let opened = 1; opened < MAX_OPENED && !closing.signal.aborted; opened++) {
      await relay.ended;
      await sleep(backoff(opened, RETRY_BACKOFF), undefined, { signal: closing.signal });
      relay = (await start(relay.port, closing.signal)) ?? relay;
    }
  };
  // Programs see that the proxy refuses connections. If the container is lost, the sandbox detects that on its own.
  keep().catch(() => {});
  closing.signal.addEventListener("abort", () => relay.close(), { once: true });

  return {
    enter: (hosts) => {
      const user = randomId();
      const pass = passFor(usual, hosts);
      passes.set(user, pass);
      for (const oldest of passes.keys()) if (passes.size > MAX_PASSES) passes.delete(oldest);
      const environment = { ...options.environment, ...environmentFor(relay, user) };
      return { environment, refused: pass.refused, end: pass.end };
    },
    close: () => closing.abort(),
  };
}

function passFor(usual: Allows, hosts: readonly string[]) {
  const more = allowing(hosts);
  const refused: RefusedHost[] = [];
  let isOver = false;
  return {
    refused,
    allows: (host: string, port: number) => usual(host, port) || more(host, port),
    onRefused(target: string, reason: RefusedHost["reason"]) {
      const isKnown = refused.some((each) => each.target === target && each.reason === reason);
      if (!isOver && !isKnown && refused.length < MAX_REFUSALS) refused.push({ target, reason });
    },
    end() {
      isOver = true;
    },
  };
}

function environmentFor({ port }: Relay, user: string): Record<string, string> {
  const proxy = `http://${user}:x@127.0.0.1:${port}`;
  const own = "localhost,127.0.0.1,::1";
  return {
    ...{ HTTP_PROXY: proxy, HTTPS_PROXY: proxy, http_proxy: proxy, https_proxy: proxy },
    ...{ NO_PROXY: own, no_proxy: own },
    // Node's own clients use the variables above only if this variable is set.
    NODE_USE_ENV_PROXY: "1",
  };
}
