// The tool execute runs a command in the workspace and streams its output. The result looks like a terminal, with a last line
// in brackets that explains how the command ended. A call fails only if something other than the command itself ended the
// command.

import { z } from "zod";
import { warning } from "../../../protocol/event.ts";
import type { Backend, BackendConfig, CommandEnd, ExecResult } from "../../core/backend.ts";
import { COMMAND_ENVIRONMENT } from "../../core/command-environment.ts";
import { mapEvents } from "../../core/stream.ts";
import { defineTool, done, failed, type Tool } from "../../core/tool.ts";
import { allowedHosts, hostLimits, refusals, toldOf } from "./hosts.ts";

const MAX_SECONDS = 600;
const DESCRIPTION =
  "Run a shell command (sh) in the workspace. Use relative paths. The command cannot read typed input. Returns its output and exit code. Background processes keep running.";
/** Each backend type may set the default time limit, in seconds. */
const Limits = z.looseObject({ timeout: z.number().positive().max(MAX_SECONDS).default(120) });

export function execute(backend: Backend, config: BackendConfig | undefined): Tool {
  const seconds = Limits.parse(config ?? {}).timeout;
  const limits = hostLimits(config);
  return defineTool({
    name: "execute",
    description: limits ? `${DESCRIPTION} ${toldOf(limits)}` : DESCRIPTION,
    parameters: z.object({
      command: z.string().min(1),
      timeout: z
        .number()
        .positive()
        .max(MAX_SECONDS)
        .default(seconds)
        .describe("Seconds after which the command and all processes that it started are ended."),
    }),
    annotations: { category: "execute" },
    describeCall: ({ command }) => `run the command \`${command}\``,
    async *execute({ command, timeout }, call, run) {
      const environment = run.values.get(COMMAND_ENVIRONMENT);
      const work = backend.exec(command, {
        ...{ signal: run.signal, timeoutMs: timeout * 1000 },
        ...(environment ? { environment } : {}),
        ...(limits?.ask ? { hosts: allowedHosts(run) } : {}),
      });
      const result = yield* mapEvents(work, ({ text }) => [
        { event: "on_tool_progress", name: call.name, data: { call_id: call.id, output: text } } as const,
      ]);
      for (const refused of refusals(result.refused ?? [])) yield warning("network_refused", refused);
      const report = reportOf(result);
      return result.ended ? failed(reasons[result.ended](timeout, result.detail), report) : done(report);
    },
  });
}

const reasons: Readonly<Record<CommandEnd, (seconds: number, detail?: string) => string>> = {
  timeout: (seconds) =>
    `The command and everything it had started were ended after ${seconds} s. Set \`timeout\` (at most ${MAX_SECONDS}), or run it in the background.`,
  cancelled: () => "The command was cancelled before it finished.",
  "output-limit": () => "The command was ended because it printed too much. Redirect its output to a file.",
  "disk-limit": () =>
    "The command was ended because the workspace would exceed its maximum size. Remove files.",
  oom: () => "The sandbox ran out of memory, and the command or part of it was killed.",
  "output-lost": () => "The command ended, but its last output and its exit code are lost.",
  "sandbox-lost": (_, detail = "it went away") =>
    `The sandbox was lost while the command was running: ${detail}. The effect of the command is unknown. Files are kept, and the next call will work again.`,
};

function reportOf({ output, omitted, exitCode, signal, refused = [] }: ExecResult): string {
  const network = refused.length > 0 ? `[network: ${refusals(refused).join(" ")}]\n` : "";
  const facts = [
    exitCode === null ? `killed by ${signal ?? "a signal"}` : `exit_code: ${exitCode}`,
    ...(omitted > 0 ? [`${omitted} characters of output left out`] : []),
  ];
  const gap = output === "" || output.endsWith("\n") ? "" : "\n";
  return `${output}${gap}${network}[${facts.join(", ")}]`;
}
