// The `limits` settings in server.yaml.

import { z } from "zod";
import { count, Interval, MIB } from "./numbers.ts";

export const Limits = z.strictObject({
  body_bytes: count.default(MIB).describe("Maximum size of a JSON body in bytes."),
  body_entries: count
    .default(20_000)
    .describe("Maximum number of keys and values in a JSON body. Wires allow five times as many."),
  incoming_bytes: count
    .default(256 * MIB)
    .describe(
      "Maximum total size in bytes of the JSON bodies of 32 KiB or more that the process receives or handles at once. At least 16 times `body_bytes`.",
    ),
  upload_bytes: count.default(1024 * MIB).describe("Maximum size of an uploaded file in bytes."),
  request_timeout: Interval.prefault("60s").describe(
    "Maximum time for a request body to arrive. An upload must send some data within this time and average 4 KB per second.",
  ),
  runs: count
    .default(500)
    .describe("Maximum number of runs that this process executes at once. Further runs wait."),
  subagents: count
    .default(256)
    .describe(
      "Maximum number of subagents that work in this process at once while a run waits for them. Further subagents wait.",
    ),
  subagents_per_run: count
    .default(16)
    .describe(
      "Maximum number of one run's subagents, on all levels, that work at once. Further subagents wait.",
    ),
  subagents_in_all: count
    .default(200)
    .describe(
      "Maximum number of subagents, on all levels, that one run can start in this process. If the run tries to start more, the model gets an error.",
    ),
  queued_runs: z
    .int()
    .min(0)
    .default(16)
    .describe("Maximum number of runs that can wait for one busy thread. Further runs get 429."),
  waiting_threads: count
    .default(1000)
    .describe(
      "Maximum number of one tenant's threads with runs that wait for a free slot. Further runs get 429.",
    ),
  thread_bytes: count
    .default(32 * MIB)
    .describe(
      "Maximum size in bytes of a thread's messages, as JSON. A run that reaches it ends with `limit_exceeded`.",
    ),
  temporary_threads: count
    .default(10_000)
    .describe(
      "Maximum number of a user's temporary threads, which the server deletes after their runs. Further runs get 429.",
    ),
  schedules: count.default(100).describe("Maximum number of schedules per user."),
  agent_schedules: count
    .default(20)
    .describe("Maximum number of a user's schedules that agents created. They count toward `schedules`."),
  webhooks: count.default(20).describe("Maximum number of webhooks per user, and per tenant."),
  triggers: count.default(100).describe("Maximum number of triggers per user."),
  trigger_requests: count
    .default(600)
    .describe(
      "Maximum requests per minute that one trigger accepts in this process. Further requests get 429.",
    ),
  streams: count.default(10_000).describe("Maximum number of open event streams in this process."),
  unread_bytes: count
    .default(256 * MIB)
    .describe(
      "Maximum size in bytes of all data in streams and long responses that clients have not received yet. Above this size, the server cuts off the response that has stalled for longest.",
    ),
  connections: count
    .default(20_000)
    .describe(
      "Maximum number of connections. Three quarters of the process's file limit applies if that is lower.",
    ),
  connections_per_address: count
    .optional()
    .describe(
      "Maximum number of connections from one address (one /64 network for IPv6). Default: a fair share of `connections`.",
    ),
});
