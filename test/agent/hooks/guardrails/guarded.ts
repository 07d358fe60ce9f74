// A run with guardrails, and what came of it for whom.

import { z } from "zod";
import { textOf } from "../../../../src/agent/core/message.ts";
import type { Model, ModelRequest } from "../../../../src/agent/core/model.ts";
import { defineTool } from "../../../../src/agent/core/tool.ts";
import { guardrails } from "../../../../src/agent/hooks/guardrails/index.ts";
import { type Script, scriptedModel, type Turn } from "../../../../src/agent/models/scripted.ts";
import { type Play, play } from "../../../support/agent.ts";
import { textSeen } from "../../../support/drain.ts";
import { listening } from "../listening.ts";
import { made } from "../made.ts";

export const NO = "I cannot help with that.";
export const REFUSED = { status: "success", stop_reason: "refusal" };

export const isJudging = (request: ModelRequest) => request.system[0]?.id === "guardrail";
export const verdict = (allowed: boolean, reason = "because"): Turn => ({
  say: JSON.stringify(allowed ? { allowed } : { allowed, reason }),
});

/** A call of the tool that every run has. */
export const write = (args: Record<string, unknown>, more = {}) => ({ tool: "write", args, ...more });

/** What a judge was given to judge. */
export const judgedText = (request: ModelRequest | undefined) => textOf(request?.messages[0]?.content ?? "");

interface Case extends Omit<Play, "script" | "model"> {
  /** What the model answers, one after the other; then "ok". */
  turns?: readonly Turn[];
  /** What it says as a judge. */
  judge?: Turn | Script;
  judgeModel?: Model;
}

export async function guarded(options: Record<string, unknown>, { turns = [], judge, ...more }: Case = {}) {
  let answers = 0;
  let verdicts = 0;
  const { model, asked } = listening((request) => {
    if (!isJudging(request)) return turns[answers++] ?? { say: "ok" };
    return typeof judge === "function" ? judge(request, verdicts++) : (judge ?? verdict(true));
  });
  let ran = 0;
  const tool = defineTool({
    ...{ name: "write", description: "", parameters: z.looseObject({}) },
    execute() {
      ran++;
      return "written";
    },
  });
  const { judgeModel, hooks = [], ...rest } = more;
  const hook = made(guardrails, {
    options,
    createModel: () => judgeModel ?? scriptedModel([]),
  });
  const played = await play({ model, tools: [tool], ...rest, hooks: [hook, ...hooks] });
  return {
    ...{ ...played, ran, seen: textSeen(played.events), last: played.messages.at(-1) },
    asked: asked.filter((request) => !isJudging(request)),
    judged: asked.filter(isJudging),
    /** Everything that leaves the run. */
    told: JSON.stringify([played.events, played.messages, [...played.state]]),
  };
}
