// The `backends` settings in server.yaml.

import { z } from "zod";
import { isLoopback } from "../../lib/hosts.ts";
import { Size } from "../../lib/units.ts";
import { count, Interval } from "./numbers.ts";
import { ToolHosts } from "./tool-hosts.ts";

export const DockerHost = z
  .string()
  .regex(
    /^(unix:\/\/\/|\/|(tcp|https?):\/\/[^/]+$)/,
    "must be unix:///path/to/docker.sock or tcp://host:port",
  );

const Tls = z.strictObject({
  ca: z.string().min(1).describe("PEM file with the certificate authority of the engine."),
  cert: z.string().min(1).describe("PEM file with the client certificate."),
  key: z.string().min(1).describe("PEM file with the client key."),
});

/** Access to an engine is root access to its machine, so it is never reached over a network without certificates. */
const isOpenToNetwork = ({ host, tls }: { host: string; tls?: object | undefined }) =>
  /^(tcp|https?):/.test(host) && !tls && !isLoopback(new URL(host).hostname.replace(/^\[|\]$/g, ""));

const DockerEngine = z
  .strictObject({
    name: z
      .string()
      .regex(/^[a-z0-9][a-z0-9-]{0,31}$/, "must be 1 to 32 characters out of a-z 0-9 -, for example `east-1`")
      .describe("Name of the engine, recorded with each sandbox."),
    host: DockerHost.describe("Address of the engine: `unix:///…` or `tcp://host:port`."),
    tls: Tls.optional().describe("Certificates, read at startup. Required for `tcp://` to another machine."),
    drain: z
      .boolean()
      .default(false)
      .describe("Starts no new sandboxes on this engine and moves its existing sandboxes to other engines."),
    sandboxes: count
      .optional()
      .describe(
        "Maximum number of running sandboxes on this engine. New users are distributed in proportion to it. Default: `backends.docker.sandboxes`.",
      ),
  })
  .refine((engine) => !isOpenToNetwork(engine), {
    path: ["tls"],
    error:
      "is required: access to an engine is root access to its machine. Name certificate files, as in `tls: { ca: ca.pem, cert: cert.pem, key: key.pem }`. Only an engine on this machine needs none",
  })
  .refine(({ host, tls }) => !tls || /^(tcp|https):/.test(host), {
    path: ["tls"],
    error: "is only for an engine at tcp://host:port, not for a socket",
  });

const DockerEngines = z
  .array(DockerEngine)
  .min(1)
  .max(64)
  .refine((engines) => new Set(engines.map(({ name }) => name)).size === engines.length, {
    error: "must have different names: the server finds a sandbox by the name of its engine",
  });

const Docker = z.strictObject({
  host: DockerHost.optional().describe(
    "Address of the Docker engine: `unix:///…` or `tcp://…`. Default: the usual socket.",
  ),
  engines: DockerEngines.optional().describe("Several engines, instead of `host`."),
  deployment: z
    .string()
    .regex(/^[A-Za-z0-9_-]{1,64}$/, "must be 1 to 64 characters from A-Z, a-z, 0-9, _ and -")
    .optional()
    .describe(
      "Name that marks the containers and volumes of this deployment. Default: generated once and kept in the data folder.",
    ),
  sandboxes: count
    .default(100)
    .describe(
      "Maximum number of sandboxes that run at the same time. To start one more, the server stops a sandbox that has been idle for a minute.",
    ),
  sandboxes_per_tenant: count
    .optional()
    .describe(
      "Maximum number of one tenant's sandboxes that run at the same time. Default: half of `sandboxes`, or all of them with `AUTH=none`.",
    ),
  disk_per_tenant: Size.optional().describe(
    "Maximum disk space for all of a tenant's sandboxes, including stopped ones. Default: no limit.",
  ),
  sweep: Interval.prefault("20s").describe("Interval between searches for idle sandboxes."),
  firewall: z
    .enum(["managed", "operator"])
    .default("managed")
    .describe(
      "Who maintains the firewall that keeps sandboxes on `bridge` away from private networks: this server or the operator.",
    ),
  private_hosts: ToolHosts.default("").describe(
    "Private addresses that sandboxes can reach if their `network.allow` names the host: `host` or `host:port`, separated by commas.",
  ),
});

export const Backends = z.strictObject({
  allow_local: z.boolean().default(false).describe("Allows several users to use the local backend."),
  docker: Docker.prefault({}),
});
