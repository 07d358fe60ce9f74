// What a sandbox can reach. `none`: nothing. `bridge`: the internet, but neither the host, nor what is private, nor
// another sandbox. Any other name: an internal network of the operator's, and who is on it.

import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { AppError } from "../../core/errors.ts";
import type { Logger } from "../../lib/logger.ts";
import { serially } from "../../lib/serially.ts";
import type { DockerSettings } from "../definition.ts";
import type { Engine } from "./engine.ts";
import type { NetworkInfo } from "./engine-info.ts";
import { firewall } from "./firewall.ts";
import { CommandFailed } from "./host-command.ts";
import { labelOf } from "./identity.ts";

const OPTION = "com.docker.network.bridge";
/** Without it, what sandboxes on one bridge send each other passes the firewall by. */
const SEES_BRIDGES = "/proc/sys/net/bridge/bridge-nf-call-iptables";

export interface Networks {
  /**
   * What a container's specification calls the network; another one when it was made anew. Before a container is made
   * and before it is started: it also sees to the firewall. Throws `backend_refused` for what sandboxes may not be
   * on, `backend_failed`, or what the engine says.
   */
  prepare(mode: string, signal: AbortSignal): Promise<string>;
  /** Removes the network of `bridge` and its firewall. Throws 403 while sandboxes are on it. */
  remove(signal: AbortSignal): Promise<void>;
}

export type NetworkEngine = Pick<Engine, "inspectNetwork" | "createNetwork" | "removeNetwork">;

export interface NetworksOptions {
  readonly deployment: string;
  /** `operator`: the operator answers for all that sandboxes can reach on `bridge` and on internal networks. */
  readonly firewall: DockerSettings["firewall"];
  readonly logger: Logger;
}

export function networks(engine: NetworkEngine, options: NetworksOptions): Networks {
  const { deployment, logger } = options;
  const isManaged = options.firewall === "managed";
  const mark = createHash("sha256").update(deployment).digest("hex").slice(0, 12);
  const name = `skein-${mark}`;
  // The kernel takes 15 characters.
  const bridge = `sk-${mark}`;
  const wall = firewall(bridge, mark);
  const inTurn = serially();
  const made = {
    [`${OPTION}.name`]: bridge,
    [`${OPTION}.enable_icc`]: "false",
  };

  const make = async (signal: AbortSignal): Promise<NetworkInfo> => {
    const spec = { Name: name, Driver: "bridge", Internal: false, EnableIPv6: false };
    const Labels = Object.fromEntries([labelOf(deployment).split("=")]);
    const failure = await engine.createNetwork({ ...spec, Labels, Options: made }, signal).then(
      () => logger.info({ network: name, bridge }, "made a network for sandboxes"),
      (error: unknown) => error,
    );
    // Also when another process was faster.
    const found = await engine.inspectNetwork(name, signal);
    if (found) return found;
    throw failure ?? new AppError("backend_failed", `The network \`${name}\` does not stay on the engine.`);
  };

  const toInternet = async (signal: AbortSignal): Promise<string> => {
    if (isManaged && !isRoot()) throw needsFirewall("it is not root");
    const known = await engine.inspectNetwork(name, signal);
    const network = known ?? (await make(signal));
    if (!Object.entries(made).every(([key, value]) => network.options[key] === value) || network.hasIpv6)
      throw new AppError(
        "backend_failed",
        `The network \`${name}\` on the engine is not as this server makes it. Remove it, and it is made again.`,
      );
    if (isManaged)
      await raise(signal).catch(async (error: unknown) => {
        if (!known) await engine.removeNetwork(network.id, signal).catch(() => {});
        throw error;
      });
    return network.id;
  };

  const raise = async (signal: AbortSignal): Promise<void> => {
    const interfaces = await readFile("/proc/self/net/dev", "utf8").catch(() => "");
    if (!interfaces.includes(`${bridge}:`))
      throw needsFirewall("the engine's networks are not on this machine");
    if ((await readFile(SEES_BRIDGES, "utf8").catch(() => "")).trim() !== "1")
      throw needsFirewall("the machine's setting `net.bridge.bridge-nf-call-iptables` is not 1");
    try {
      await wall.raise(signal);
    } catch (error) {
      if (!(error instanceof CommandFailed)) throw error;
      throw needsFirewall(`\`${error.program}\` failed, and the server's log tells more`, error);
    }
  };

  const among = async (wanted: string, signal: AbortSignal): Promise<string> => {
    const network = await engine.inspectNetwork(wanted, signal);
    if (!network) throw refused(wanted, "is not on the engine");
    if (!network.isInternal) throw refused(wanted, "leads out of the engine");
    if (isManaged && hasHost(network)) throw refused(wanted, "leads to the engine's machine");
    return network.id;
  };

  return {
    async prepare(mode, signal) {
      if (mode === "none") return mode;
      return mode === "bridge" ? inTurn(name, () => toInternet(signal)) : among(mode, signal);
    },
    async remove(signal) {
      await engine.removeNetwork(name, signal);
      if (isManaged && isRoot()) await wall.lower(signal);
    },
  };
}

const isRoot = () => process.getuid?.() === 0;

/** Whether the host has an address in it, and with it all that listens there. */
function hasHost({ driver, options, hasIpv6 }: NetworkInfo): boolean {
  const isShut = (version: string) => options[`${OPTION}.gateway_mode_${version}`] === "isolated";
  const hasIpv4 = options[`${OPTION}.inhibit_ipv4`] !== "true" && !isShut("ipv4");
  return driver !== "bridge" || hasIpv4 || (hasIpv6 && !isShut("ipv6"));
}

const refused = (name: string, why: string) =>
  new AppError(
    "backend_refused",
    `The network \`${name}\` ${why}. Use \`bridge\` for the internet, or make one that is shut off: \`docker network create --internal -o ${OPTION}.inhibit_ipv4=true ${name}\`.`,
  );

const needsFirewall = (why: string, cause?: unknown) =>
  new AppError(
    "backend_refused",
    `The network \`bridge\` needs firewall rules that this server cannot set: ${why}. Run it as root on the engine's machine, with iptables; or, if rules of your own keep sandboxes away from what is private, set \`backends.docker.firewall: operator\` in server.yaml; or use \`network: none\`.`,
    { cause },
  );
