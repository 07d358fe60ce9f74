// The settings `limits` of server.yaml.

import { z } from "zod";
import { count, Interval, MIB } from "./numbers.ts";

export const Limits = z.strictObject({
  body_bytes: count.default(MIB).describe("Maximum size of a JSON body in bytes."),
  body_entries: count
    .default(20_000)
    .describe("Maximum number of keys and values in a JSON body; five times as many for wires."),
  incoming_bytes: count
    .default(256 * MIB)
    .describe(
      "Maximum bytes of JSON bodies of 32 KiB or more that the process receives or handles at once. At least 16 times `body_bytes`.",
    ),
  upload_bytes: count.default(1024 * MIB).describe("Maximum size of an uploaded file in bytes."),
  request_timeout: Interval.prefault("60s").describe(
    "Maximum time for the body of a request to arrive. An upload must send data within this time, and 4 KB per second on average.",
  ),
  runs: count.default(500).describe("Maximum runs that this process executes at once. Further runs wait."),
  subagents: count
    .default(256)
    .describe(
      "Maximum subagents that work at once in this process while a run waits for them. Further subagents wait.",
    ),
  subagents_per_run: count
    .default(16)
    .describe("Maximum subagents of one run, on all levels, that work at once. Further subagents wait."),
  subagents_in_all: count
    .default(200)
    .describe(
      "Maximum subagents that one run, on all levels, starts in this process. The model reads an error for one more.",
    ),
  queued_runs: z
    .int()
    .min(0)
    .default(16)
    .describe("Maximum runs that wait for one busy thread. One more gets 429."),
  waiting_threads: count
    .default(1000)
    .describe("Maximum threads of one tenant with runs that wait for room. One more gets 429."),
  thread_bytes: count
    .default(32 * MIB)
    .describe(
      "Maximum bytes of the messages of a thread, as JSON. A run that reaches it ends with `limit_exceeded`.",
    ),
  temporary_threads: count
    .default(10_000)
    .describe("Maximum threads of one user that the server deletes after their runs. One more gets 429."),
  schedules: count.default(100).describe("Maximum schedules of a user."),
  agent_schedules: count
    .default(20)
    .describe("Maximum schedules of a user that agents made. They are among the `schedules`."),
  webhooks: count.default(20).describe("Maximum webhooks of a user, and of a tenant."),
  triggers: count.default(100).describe("Maximum number of triggers of a user."),
  trigger_requests: count
    .default(600)
    .describe("Maximum requests in a minute that one trigger takes in this process. One more gets 429."),
  streams: count.default(10_000).describe("Maximum open event streams of this process."),
  unread_bytes: count
    .default(256 * MIB)
    .describe(
      "Maximum bytes of streams and long answers that wait for their clients. Above it the server cuts the answer that has stalled for longest.",
    ),
  connections: count
    .default(20_000)
    .describe("Maximum connections, or three quarters of the process's file limit if that is lower."),
  connections_per_address: count
    .optional()
    .describe(
      "Maximum connections of one address (one /64 network for IPv6). Default: a fair share of `connections`.",
    ),
});
