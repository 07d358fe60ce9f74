// The options of a Docker backend. All except the image have a default.

import { z } from "zod";
import { Duration, Size } from "../../lib/units.ts";
import { Id } from "../../protocol/ids.ts";
import { commonOptions } from "../definition.ts";
import { AllowedHosts, isCovered } from "../egress/allowed-hosts.ts";
import type { SandboxKeep } from "../sandbox-records.ts";

const MIB = 1024 ** 2;
/** The pages of a tmpfs count as memory. If they could fill the memory, no process could start. */
const MAX_TMP_SHARE = 0.4;
export const SHM_BYTES = 16 * MIB;
const USUAL_TMP_BYTES = 64 * MIB;
/** The minimum memory in MiB. It leaves room for /tmp. */
const LEAST_MEMORY_MIB = 48;

const roomForTmp = (memory: number) => Math.floor(memory * MAX_TMP_SHARE) - SHM_BYTES;

const EXAMPLE_IMAGE = "for example python:3.12-slim";

const atLeast = (mib: number) =>
  Size.refine((bytes) => bytes >= mib * MIB, {
    error: ({ input }) =>
      typeof input === "number" && input < MIB && Number.isInteger(input)
        ? `must be at least ${mib}m, and a number alone is in bytes: did you mean \`${input}m\`?`
        : `must be at least ${mib}m, for example ${mib * 2}m`,
  });
const Keep = z.union([z.literal("forever").transform(() => null), Duration]);

export const Egress = z.strictObject({
  allow: AllowedHosts.describe(
    "Hosts that commands can reach over HTTPS and HTTP: `api.example.com`, `*.example.com` for all its subdomains, `*` for all hosts, or `host:port` for another port.",
  ),
  ask: z
    .boolean()
    .default(false)
    .describe("Gives the agent the `request_host` tool, which asks the user to allow a host for the thread."),
});

/** Variables that commands use to find their shell, files, proxy and certificate authorities. */
const TAKEN =
  /^(?:PATH|HOME|PWD|WORKSPACE|TMPDIR|ENV|IFS|LD_.*|(?:HTTPS?|NO|ALL)_PROXY|NODE_(?:OPTIONS|USE_ENV_PROXY|EXTRA_CA_CERTS)|SSL_CERT_(?:FILE|DIR)|REQUESTS_CA_BUNDLE|CURL_CA_BUNDLE|GIT_SSL_CAINFO)$/i;
const MAX_VARIABLES = 32;

const Variable = z
  .string()
  .regex(/^[A-Za-z_][A-Za-z0-9_]{0,127}$/, "must be the name of a variable")
  .refine((name) => !TAKEN.test(name), "is a variable that the sandbox sets itself");

const SecretVariable = z.strictObject({
  vault: Id.describe("Id of the connection that contains the value."),
  per: z.enum(["user", "tenant"]).default("user").describe("Owner of the connection."),
  hosts: AllowedHosts.describe(
    "Hosts that receive the value, in the format of `network.allow`, which must also include them.",
  ),
  http: z.boolean().default(false).describe("Also sends the value over plain HTTP."),
});

export const DockerOptions = z
  .strictObject({
    type: z.literal("docker").describe("Files and commands are in a container for each user."),
    ...commonOptions,
    image: z
      .string({ error: ({ input }) => (input === undefined ? `is missing, ${EXAMPLE_IMAGE}` : undefined) })
      .regex(/^[A-Za-z0-9][A-Za-z0-9._/:@-]{0,254}$/, `must name an image, ${EXAMPLE_IMAGE}`)
      .describe("Image of the container. Any image with /bin/sh works. The engine pulls a missing image."),
    network: z
      .union([
        z
          .string()
          .regex(
            /^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/,
            "must be none, bridge, or the name of an internal network",
          ),
        Egress,
      ])
      .default("none")
      .describe(
        "`none`, `bridge` for the internet, the name of one of the engine's internal networks, or `{ allow: [host, …] }` for certain hosts only.",
      ),
    env: z
      .record(Variable, SecretVariable)
      .refine(
        (env) => Object.keys(env).length <= MAX_VARIABLES,
        `must have at most ${MAX_VARIABLES} variables`,
      )
      .optional()
      .describe(
        "Variables for secrets. Commands see a placeholder, which the proxy replaces in headers with the value of a connection. Requires `network.allow`.",
      ),
    memory: atLeast(LEAST_MEMORY_MIB)
      .prefault("512m")
      .describe("Maximum memory. No swap is available. The contents of /tmp count as memory."),
    cpus: z.number().min(0.05).max(1024).default(1).describe("Number of processors."),
    pids: z.int().min(16).max(32_768).default(256).describe("Maximum number of processes and threads."),
    disk: atLeast(16).prefault("1g").describe("Maximum size of the workspace."),
    tmp: atLeast(1)
      .optional()
      .describe(
        "Size of /tmp. Together with 16m of shared memory, at most 40 % of `memory`. Default: 64m, or less if `memory` is small.",
      ),
    runtime: z
      .string()
      .regex(
        /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/,
        "must name a runtime that the engine knows, for example runsc",
      )
      .optional()
      .describe(
        "Container runtime, such as `runsc` (gVisor). The engine must have it. Default: the engine's own.",
      ),
    idle_stop: Duration.prefault("15m").describe(
      "Idle time after which the container stops. Its files are kept.",
    ),
    idle_remove: Keep.prefault("24h").describe(
      "Idle time after which the container is removed, or `forever` to keep it. Its files are kept.",
    ),
    keep_files: Keep.prefault("forever").describe(
      "Idle time after which the files are deleted, or `forever` to keep them.",
    ),
  })
  .refine(({ memory, tmp }) => tmp === undefined || tmp <= roomForTmp(memory), {
    path: ["tmp"],
    error: ({ input }) => {
      // Refinements run only after all earlier fields have been accepted.
      const { memory } = input as { memory: number };
      const most = Math.floor(roomForTmp(memory) / MIB);
      return `must be at most ${most}m for this \`memory\`, because the contents of /tmp count as memory`;
    },
  })
  .superRefine(({ env = {}, network }, { addIssue }) => {
    const allow = typeof network === "string" ? [] : network.allow;
    for (const [name, { hosts }] of Object.entries(env))
      for (const [at, host] of hosts.entries())
        if (!isCovered(host, allow))
          addIssue({
            code: "custom",
            path: ["env", name, "hosts", at],
            message: "must name a host that `network.allow` allows",
          });
  })
  .transform(({ tmp, ...options }) => ({
    ...options,
    tmp: tmp ?? Math.min(USUAL_TMP_BYTES, roomForTmp(options.memory)),
  }));
export type DockerOptions = z.output<typeof DockerOptions>;

export const keepOf = ({ idle_stop, idle_remove, keep_files }: DockerOptions): SandboxKeep => ({
  running: idle_stop,
  container: idle_remove,
  files: keep_files,
});
