// Counts the work of a run from its events, except deltas.

import type { Usage } from "../../agent/core/message.ts";
import type { Claim } from "../../agent/core/stores.ts";
import type { RunListener } from "../../engine/runs/services.ts";
import type { StreamEvent } from "../../protocol/event.ts";
import { readSpans } from "../../protocol/span-reader.ts";
import type { Families } from "./families.ts";
import type { Labels } from "./labels.ts";

const inSeconds = (ms: number) => Math.max(0, ms) / 1000;

export function followRun({ run }: Claim, to: Families, labels: Labels): RunListener {
  const agent = labels.agent(run.agent);
  const accepted = Date.parse(run.created_at);
  let hasSpoken = false;
  if (run.attempt > 1) to.takenOver.inc();
  else to.runWait.observe(inSeconds(Date.now() - accepted));

  const spans = readSpans<{ readonly model: string; readonly begun: number }>({
    model: {
      opened: ({ start }) => ({ model: labels.model(start.data.model), begun: Date.now() }),
      closed({ data: { error, usage, first_token_ms } }, span) {
        if (!span?.own) return;
        const { model, begun } = span.own;
        to.modelCalls.inc({ model, outcome: error?.code ?? "ok" });
        to.modelSeconds.observe({ model }, inSeconds(Date.now() - begun));
        if (first_token_ms !== undefined) {
          to.modelFirstToken.observe({ model }, inSeconds(first_token_ms));
          if (!hasSpoken) to.firstToken.observe({ agent }, inSeconds(begun - accepted + first_token_ms));
          hasSpoken = true;
        }
        if (usage) count(model, usage);
      },
      retried({ own }, end) {
        if (own) to.modelRetries.inc({ model: own.model, code: end?.data.error?.code ?? "other" });
      },
    },
    tool: {
      closed({ name, data: { error, interrupted, duration_ms } }) {
        const tool = labels.tool(name);
        const outcome = interrupted ? "interrupted" : error === undefined ? "ok" : "error";
        to.toolCalls.inc({ tool, outcome });
        to.toolSeconds.observe({ tool }, inSeconds(duration_ms));
      },
    },
    run: {
      closed(end) {
        if (end.event === "done") ended(end.data.status, end.data.stop_reason);
        else ended("error", end.data.code);
      },
    },
  });

  function see(event: StreamEvent): undefined {
    if (event.event === "on_interrupt") to.interrupts.inc({ kind: event.data.kind });
    spans.see(event);
  }

  function count(model: string, usage: Usage) {
    to.modelTokens.inc({ model, kind: "input" }, usage.input_tokens);
    to.modelTokens.inc({ model, kind: "output" }, usage.output_tokens);
    to.modelTokens.inc({ model, kind: "cache_read" }, usage.cache_read_tokens);
    to.modelTokens.inc({ model, kind: "cache_write" }, usage.cache_write_tokens);
    if (usage.cost !== undefined) to.modelCost.inc({ model }, usage.cost);
  }

  function ended(status: string, stop_reason: string) {
    to.runsEnded.inc({ agent, status, stop_reason });
    to.runSeconds.observe({ agent }, inSeconds(Date.now() - accepted));
  }

  return {
    onProgress: see,
    afterWrite: see,
    onStored: (ms) => to.storeSeconds.observe({ operation: "events.append" }, inSeconds(ms)),
    onLost: () => to.leasesLost.inc(),
    onFailure({ what, model = "", fallback, tool = "", code, hook = "other" }) {
      if (what === "model" && fallback !== undefined)
        to.modelFallbacks.inc({ from: labels.model(model), to: labels.model(fallback) });
      if (what === "tool")
        to.endpointFailures.inc({ tool: labels.tool(tool), code: labels.endpointCode(code) });
      if (what === "hook") to.hookFailures.inc({ hook });
    },
  };
}
