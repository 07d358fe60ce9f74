// An agent whose hooks are functions in the style of other frameworks. Test: npm test -- test/examples/hooks.test.ts

import { createAgent, type Model, type Tool, userMessage } from "../../src/index.ts";
import {
  compaction,
  fileSessions,
  fromEffect,
  fromMiddleware,
  fromPostGeneration,
  fromPostToolUse,
  fromPreGeneration,
  fromPreToolUse,
  injectContext,
  sessionHooks,
  usageLogger,
  withLogger,
  withOutputGuardrail,
  withTimeout,
} from "../../src/skein/adapters/index.ts";

interface Logger {
  info(details: object, message: string): void;
  error(details: object, message: string): void;
}

export function familiar(
  model: Model,
  tools: Tool[],
  { folder, logger }: { folder: string; logger: Logger },
) {
  const { loader, saver } = sessionHooks(fileSessions(folder));
  return createAgent({
    name: "familiar",
    model,
    tools,
    hooks: [
      fromMiddleware(
        withLogger(logger, "familiar"),
        withTimeout(60_000),
        withOutputGuardrail(({ content }) => {
          if (content.includes("password")) throw new Error("No passwords.");
        }),
      ),
      fromPreGeneration(
        loader,
        injectContext("The project uses tabs."),
        compaction(50_000, async (messages) => [userMessage("Earlier: …"), ...messages.slice(-4)]),
      ),
      fromPostGeneration(saver, usageLogger(logger)),
      fromPreToolUse(({ call, tool }) => {
        if (call.name === "delete_all") return { decision: "deny", message: "Not that one." };
        if (tool?.annotations.destructive) return { decision: "ask", message: `Really ${call.name}?` };
        return undefined; // leaves the decision to the next hook, and finally to the agent's permissions
      }),
      fromPostToolUse(({ result }) => ({ ...result, output: String(result.output).trim() })),
      fromEffect(({ phase, iteration, chat }) => {
        if (phase === "before_complete" && iteration === 10) chat.append(userMessage("Please finish now."));
      }),
    ],
  });
}
