// A small catalogue of real parts, and agents files that are written for one test.

import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { onTestFinished } from "vitest";
import { z } from "zod";
import type { Catalogue } from "../../../src/agent/agents/catalogue.ts";
import { AppError } from "../../../src/agent/core/errors.ts";
import { defineHook } from "../../../src/agent/core/hook.ts";
import { defineTool } from "../../../src/agent/core/tool.ts";
import { scriptedModel } from "../../../src/agent/models/scripted.ts";
import { McpServerDefinitions } from "../../../src/agent/tools/mcp/options.ts";

const tool = (name: string) =>
  defineTool({ name, description: "A tool.", parameters: z.object({}), execute: () => "ok" });

/** What the hooks of the catalogue were made with, newest last. */
export const made: { hook: string; options: unknown }[] = [];

const hook = (name: string, options: z.ZodType, isActive: boolean) =>
  defineHook({
    name,
    options,
    activeByDefault: () => isActive,
    create(options) {
      made.push({ hook: name, options });
      return { name };
    },
  });

const Local = z.strictObject({
  type: z.literal("local"),
  name: z.string().optional(),
  timeout: z.number().positive().default(120),
});

export const catalogue: Catalogue = {
  hooks: [
    hook(
      "outer",
      z.strictObject({
        wait: z
          .number()
          .default(5)
          .transform((s) => s * 1000),
      }),
      true,
    ),
    hook("middle", z.strictObject({ limit: z.int().min(1).default(3) }), false),
    hook("vault", z.strictObject({ path: z.string() }), false),
    hook("inner", z.strictObject({}), true),
  ],
  tools: () => [tool("calculate"), tool("current_datetime"), tool("web_search"), tool("web_fetch")],
  mcpServers: McpServerDefinitions,
  backends: z.discriminatedUnion("type", [Local]),
  createModel(spec) {
    const name = typeof spec === "string" ? spec : `${spec.provider}:${spec.model}`;
    if (/^(scripted|acme|anthropic|openai):/.test(name)) return scriptedModel([{ say: "ok" }], name);
    throw new AppError(
      "config_invalid",
      `There is no provider for \`${name}\`. Use \`scripted\` or \`acme\`.`,
    );
  },
  modelDoubt: (spec) =>
    typeof spec === "string" || !spec.api_key_env ? undefined : `needs ${spec.api_key_env}`,
};

/** The path of a file with this text, in a folder of its own with `others` beside it. */
export async function agentsFile(
  text: string,
  others: Readonly<Record<string, string>> = {},
): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), "skein-agents-"));
  onTestFinished(() => rm(dir, { recursive: true }));
  for (const [path, content] of Object.entries({ "agents.yaml": text, ...others })) {
    await mkdir(dirname(join(dir, path)), { recursive: true });
    await writeFile(join(dir, path), content);
  }
  return join(dir, "agents.yaml");
}
