// What sandboxes with a network may not reach: the machine they run on, and all that is private. It is refused by
// rules of our own in the host's firewall, for one bridge of Docker's.

import { access, readFile } from "node:fs/promises";
import { isIPv4 } from "node:net";
import { networkInterfaces } from "node:os";
import { CommandFailed, runCommand } from "./host-command.ts";

/** Addresses that are not on the internet, but to which a host may have a way. */
const PRIVATE = [
  ...["0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12"],
  ...["192.0.0.0/24", "192.168.0.0/16", "198.18.0.0/15", "224.0.0.0/4", "240.0.0.0/4"],
];
/** Where an engine looks for the resolvers that it asks for its containers. */
const RESOLVER_FILES = ["/etc/resolv.conf", "/run/systemd/resolve/resolv.conf"];
/** Docker's place for the rules of others: before its own, and left alone by it. */
const BEFORE_DOCKER = "DOCKER-USER";

/** A rule of ours in a chain of the host's. */
interface Hook {
  readonly program: "iptables" | "ip6tables";
  readonly chain: string;
  readonly target: string;
}

export interface Firewall {
  /**
   * Puts up what is missing; what is there stays in force meanwhile. Safe to repeat; two processes at once may put
   * up a rule twice, which changes nothing. Throws `CommandFailed`.
   */
  raise(signal: AbortSignal): Promise<void>;
  /** Takes all of it down, however often it is there. */
  lower(signal: AbortSignal): Promise<void>;
}

/** `mark` tells our rules from those of other deployments: at most 16 letters and digits. */
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
      // An answer at once, instead of silence that a command waits for.
      [refusing]: ["-p tcp -j REJECT --reject-with tcp-reset", "-j REJECT"],
      [toHost]: [...resolved, `-j ${refusing}`],
      [passing]: [
        ...resolved,
        // Sent to an address of the host, which hands it on to another container.
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
      // Whether Docker sends anything through there at all.
      await runCommand("iptables", ["-w", "-C", "FORWARD", "-j", BEFORE_DOCKER], { signal });
      // Replaces what these chains hold in one step, and touches no others.
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

/** A machine without IPv6 has no rules for it either. */
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

/** The networks this machine is in. The way to the internet leads through them, but not to an address in them. */
function neighbours(): string[] {
  const addresses = Object.values(networkInterfaces()).flatMap((each) => each ?? []);
  return addresses.flatMap(({ family, cidr }) => (family === "IPv4" && cidr !== null ? [cidr] : []));
}

/** What programs answer when there is no such rule or chain, and no such program. */
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
