// Controls what a sandbox can reach. With `none`, it can reach nothing. With `bridge`, it can reach the internet, but
// not the host, private addresses or other sandboxes. Rules in the host's firewall for one Docker bridge enforce this.
// Any other value is the name of an internal network that the operator provides.

import { createHash } from "node:crypto";
import { access, readFile } from "node:fs/promises";
import { isIPv4 } from "node:net";
import { networkInterfaces } from "node:os";
import { AppError } from "../../agent/core/errors.ts";
import { serially } from "../../lib/async.ts";
import type { Logger } from "../../lib/logger.ts";
import type { DockerSettings } from "../definition.ts";
import type { DockerClient, NetworkInfo } from "./engine.ts";
import { CommandFailed, runCommand } from "./host-command.ts";
import { labelOf } from "./identity.ts";

const OPTION = "com.docker.network.bridge";
/** This file must contain 1. Otherwise, traffic between sandboxes on one bridge bypasses the firewall. */
const SEES_BRIDGES = "/proc/sys/net/bridge/bridge-nf-call-iptables";

export interface Networks {
  /**
   * Returns the network's name for a container's specification. The name changes when the network is recreated. Also
   * sets up the firewall, so call it before a container is created and before it is started. Throws `backend_refused`
   * for a network that sandboxes may not use, `backend_failed`, or the engine's error.
   */
  prepare(mode: string, signal: AbortSignal): Promise<string>;
  /** Removes the network of `bridge` and its firewall. Throws 403 while sandboxes use the network. */
  remove(signal: AbortSignal): Promise<void>;
}

export type NetworkClient = Pick<DockerClient, "inspectNetwork" | "createNetwork" | "removeNetwork">;

export interface NetworksOptions {
  readonly deployment: string;
  /** A text that appears in the names of the network and its firewall. */
  readonly mark: string;
  /**
   * With `operator`, the operator restricts what sandboxes can reach on `bridge` and on internal networks.
   */
  readonly firewall: DockerSettings["firewall"];
  readonly logger: Logger;
}

export function networks(engine: NetworkClient, options: NetworksOptions): Networks {
  const { deployment, logger } = options;
  const isManaged = options.firewall === "managed";
  const mark = createHash("sha256").update(options.mark).digest("hex").slice(0, 12);
  const name = `skein-${mark}`;
  // The kernel allows at most 15 characters in the name.
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
      () => logger.info({ network: name, bridge }, "created a network for sandboxes"),
      (error: unknown) => error,
    );
    // Another process may have created the network first.
    const found = await engine.inspectNetwork(name, signal);
    if (found) return found;
    throw failure ?? new AppError("backend_failed", `The network \`${name}\` disappeared from the engine.`);
  };

  const toInternet = async (signal: AbortSignal): Promise<string> => {
    if (isManaged && !isRoot()) throw needsFirewall("it is not root");
    const known = await engine.inspectNetwork(name, signal);
    const network = known ?? (await make(signal));
    if (!Object.entries(made).every(([key, value]) => network.options[key] === value) || network.hasIpv6)
      throw new AppError(
        "backend_failed",
        `The network \`${name}\` on the engine does not have the settings that this server requires. Remove it, and the server recreates it.`,
      );
    if (isManaged)
      await raise(wall, bridge, signal).catch(async (error: unknown) => {
        if (!known) await engine.removeNetwork(network.id, signal).catch(() => {});
        throw error;
      });
    return network.id;
  };

  const among = async (wanted: string, signal: AbortSignal): Promise<string> => {
    const network = await engine.inspectNetwork(wanted, signal);
    if (!network) throw refused(wanted, "is not on the engine");
    if (!network.isInternal) throw refused(wanted, "is not internal");
    if (isManaged && hasHost(network))
      throw refused(wanted, "gives sandboxes access to the engine's machine");
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

async function raise(wall: ReturnType<typeof firewall>, bridge: string, signal: AbortSignal): Promise<void> {
  const interfaces = await readFile("/proc/self/net/dev", "utf8").catch(() => "");
  if (!interfaces.includes(`${bridge}:`))
    throw needsFirewall("the engine's networks are not on this machine");
  if ((await readFile(SEES_BRIDGES, "utf8").catch(() => "")).trim() !== "1")
    throw needsFirewall("the machine's setting `net.bridge.bridge-nf-call-iptables` is not 1");
  try {
    await wall.raise(signal);
  } catch (error) {
    if (!(error instanceof CommandFailed)) throw error;
    throw needsFirewall(`\`${error.program}\` failed; see the server's log`, error);
  }
}

const isRoot = () => process.getuid?.() === 0;

/** True if the host has an address in the network. Containers could then reach its listening ports. */
function hasHost({ driver, options, hasIpv6 }: NetworkInfo): boolean {
  const isShut = (version: string) => options[`${OPTION}.gateway_mode_${version}`] === "isolated";
  const hasIpv4 = options[`${OPTION}.inhibit_ipv4`] !== "true" && !isShut("ipv4");
  return driver !== "bridge" || hasIpv4 || (hasIpv6 && !isShut("ipv6"));
}

const refused = (name: string, why: string) =>
  new AppError(
    "backend_refused",
    `The network \`${name}\` ${why}. Use \`bridge\` for the internet, or create an isolated one: \`docker network create --internal -o ${OPTION}.inhibit_ipv4=true ${name}\`.`,
  );

const needsFirewall = (why: string, cause?: unknown) =>
  new AppError(
    "backend_refused",
    `The network \`bridge\` requires firewall rules that this server cannot set: ${why}. Run it as root on the engine's machine, with iptables; or, if your own rules keep sandboxes from private addresses, set \`backends.docker.firewall: operator\` in server.yaml; or use \`network: none\`.`,
    { cause },
  );

/** Address ranges that a host may route but that are not part of the internet. */
const PRIVATE = [
  "0.0.0.0/8",
  "10.0.0.0/8",
  "100.64.0.0/10",
  "127.0.0.0/8",
  "169.254.0.0/16",
  "172.16.0.0/12",
  "192.0.0.0/24",
  "192.168.0.0/16",
  "198.18.0.0/15",
  "224.0.0.0/4",
  "240.0.0.0/4",
];
/** Files from which an engine reads the resolvers for its containers. */
const RESOLVER_FILES = ["/etc/resolv.conf", "/run/systemd/resolve/resolv.conf"];
/** Docker's chain for rules of other programs. It comes before Docker's own rules. */
const BEFORE_DOCKER = "DOCKER-USER";

/** A rule of this deployment in one of the host's chains. */
interface Hook {
  readonly program: "iptables" | "ip6tables";
  readonly chain: string;
  readonly target: string;
}

export interface Firewall {
  /**
   * Adds missing rules, while existing rules stay in force. Safe to repeat. Two concurrent calls may add a rule
   * twice, which is harmless. Throws `CommandFailed`.
   */
  raise(signal: AbortSignal): Promise<void>;
  /** Removes all rules, including duplicates. */
  lower(signal: AbortSignal): Promise<void>;
}

/**
 * Creates the firewall. `mark` separates the rules of different deployments. It has at most 16 letters and
 * digits.
 */
export function firewall(bridge: string, mark: string): Firewall {
  const [refusing, toHost, passing] = [`SKEIN-NO-${mark}`, `SKEIN-IN-${mark}`, `SKEIN-FW-${mark}`];
  const hooks: readonly Hook[] = [
    { program: "iptables", chain: "INPUT", target: toHost },
    { program: "iptables", chain: BEFORE_DOCKER, target: passing },
    { program: "ip6tables", chain: "INPUT", target: "DROP" },
    { program: "ip6tables", chain: "FORWARD", target: "DROP" },
  ];

  const change = (how: "-C" | "-I" | "-D", { program, chain, target }: Hook, signal: AbortSignal) =>
    runCommand(program, ["-w", how, chain, "-i", bridge, "-j", target], { signal });
  const has = (hook: Hook, signal: AbortSignal) => succeeds(change("-C", hook, signal));

  const rules = async (): Promise<string> => {
    const resolved = (await resolvers()).flatMap((address) =>
      ["udp", "tcp"].map((protocol) => `-d ${address} -p ${protocol} --dport 53 -j RETURN`),
    );
    const chains = {
      // Rejects the connection at once, so a command does not wait for a timeout.
      [refusing]: ["-p tcp -j REJECT --reject-with tcp-reset", "-j REJECT"],
      [toHost]: [...resolved, `-j ${refusing}`],
      [passing]: [
        ...resolved,
        // Matches traffic to an address of the host that the host forwards to another container.
        `-m conntrack --ctstate DNAT -j ${refusing}`,
        ...[...PRIVATE, ...neighbours()].map((addresses) => `-d ${addresses} -j ${refusing}`),
      ],
    };
    const lines = [
      ...Object.keys(chains).map((name) => `:${name} - [0:0]`),
      ...Object.entries(chains).flatMap(([name, each]) => each.map((rule) => `-A ${name} ${rule}`)),
    ];
    return ["*filter", ...lines, "COMMIT", ""].join("\n");
  };

  return {
    async raise(signal) {
      // This throws unless Docker uses the chain.
      await runCommand("iptables", ["-w", "-C", "FORWARD", "-j", BEFORE_DOCKER], { signal });
      // Replaces the rules of these chains atomically and leaves all other chains unchanged.
      await runCommand("iptables-restore", ["-w", "--noflush"], { signal, input: await rules() });
      await Promise.all(
        (await usable(hooks)).map(async (hook) => {
          if (!(await has(hook, signal))) await change("-I", hook, signal);
        }),
      );
    },
    async lower(signal) {
      for (const hook of await usable(hooks))
        while (await has(hook, signal)) await change("-D", hook, signal);
      for (const how of ["-F", "-X"])
        for (const chain of [toHost, passing, refusing])
          await succeeds(runCommand("iptables", ["-w", how, chain], { signal }));
    },
  };
}

/** Omits the IPv6 rules on a machine without IPv6. */
async function usable(hooks: readonly Hook[]): Promise<readonly Hook[]> {
  const hasIpv6 = await access("/proc/self/net/if_inet6").then(
    () => true,
    () => false,
  );
  return hasIpv6 ? hooks : hooks.filter(({ program }) => program === "iptables");
}

async function resolvers(): Promise<string[]> {
  const texts = await Promise.all(RESOLVER_FILES.map((file) => readFile(file, "utf8").catch(() => "")));
  const named = [...texts.join("\n").matchAll(/^\s*nameserver\s+(\S+)/gm)].map(([, address = ""]) => address);
  return [...new Set(named)].filter((address) => isIPv4(address) && !address.startsWith("127."));
}

/** Returns the machine's own networks. Traffic to the internet passes through them but is not addressed to them. */
function neighbours(): string[] {
  const addresses = Object.values(networkInterfaces()).flatMap((each) => each ?? []);
  return addresses.flatMap(({ family, cidr }) => (family === "IPv4" && cidr !== null ? [cidr] : []));
}

/** The exit codes for a missing rule or chain, and the error code for a missing program. */
const ABSENT: readonly unknown[] = [1, 2, "ENOENT"];

async function succeeds(run: Promise<string>): Promise<boolean> {
  try {
    await run;
    return true;
  } catch (error) {
    if (error instanceof CommandFailed && ABSENT.includes(error.code)) return false;
    throw error;
  }
}
