// Counts what a run does, from its events. Deltas are not looked at.

import type { Usage } from "../core/message.ts";
import type { Claim } from "../core/stores.ts";
import type { EventData, StreamEvent } from "../protocol/event.ts";
import type { RunListener } from "../runs/services.ts";
import type { Families } from "./families.ts";
import type { Labels } from "./labels.ts";

const inSeconds = (ms: number) => Math.max(0, ms) / 1000;

export function followRun({ run }: Claim, to: Families, labels: Labels): RunListener {
  const agent = labels.agent(run.agent);
  const accepted = Date.parse(run.created_at);
  /** The model call in progress, or the last one. */
  let call = { model: "", begun: 0, failure: "" };
  let hasSpoken = false;
  if (run.attempt > 1) to.takenOver.inc();
  else to.runWait.observe(inSeconds(Date.now() - accepted));

  function see(event: StreamEvent): undefined {
    switch (event.event) {
      case "on_chat_model_start":
        call = { model: labels.model(event.data.model), begun: Date.now(), failure: "" };
        return;
      case "on_chat_model_end":
        answered(event.data);
        return;
      case "warning":
        if (event.data.code === "model_retry")
          to.modelRetries.inc({ model: call.model, code: call.failure || "other" });
        return;
      case "on_tool_end": {
        const { error, interrupted, duration_ms } = event.data;
        const tool = labels.tool(event.name);
        const outcome = interrupted ? "interrupted" : error === undefined ? "ok" : "error";
        to.toolCalls.inc({ tool, outcome });
        to.toolSeconds.observe({ tool }, inSeconds(duration_ms));
        return;
      }
      case "on_interrupt":
        to.interrupts.inc({ kind: event.data.kind });
        return;
      case "done":
        ended(event.data.status, event.data.stop_reason);
        return;
      case "error":
        ended("error", event.data.code);
    }
  }

  function answered({ error, usage, first_token_ms }: EventData<"on_chat_model_end">) {
    const { model, begun } = call;
    call.failure = error?.code ?? "";
    to.modelCalls.inc({ model, outcome: error?.code ?? "ok" });
    to.modelSeconds.observe({ model }, inSeconds(Date.now() - begun));
    if (first_token_ms !== undefined) {
      to.modelFirstToken.observe({ model }, inSeconds(first_token_ms));
      if (!hasSpoken) to.firstToken.observe({ agent }, inSeconds(begun - accepted + first_token_ms));
      hasSpoken = true;
    }
    if (usage) count(model, usage);
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
