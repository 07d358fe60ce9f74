// Writes config/agents.schema.json, which editors use to complete agents.yaml. `--check` only compares.

import { readFile, writeFile } from "node:fs/promises";
import { z } from "zod";
import { fileSchemas } from "../src/agent/agents/schema.ts";
import { hooks } from "../src/agent/hooks/index.ts";
import { McpServerDefinitions } from "../src/agent/tools/mcp/options.ts";
import { FileSchedules } from "../src/engine/schedules/file-schedules.ts";
import { BackendOptions } from "../src/sandbox/index.ts";

const FILE = new URL("../config/agents.schema.json", import.meta.url);

const parts = {
  hooks,
  backends: BackendOptions,
  tools: () => [],
  mcpServers: McpServerDefinitions,
  schedules: FileSchedules,
};
const { several, single } = fileSchemas(parts);
const file = z
  .union([several, single])
  .describe(
    "The agents of a Skein server. A file contains either several agents or a single agent at the top level.",
  );
/** Allows the hooks of plugins, which only the server knows. Top-level keys that start with `x-` are ignored. */
const withOwnKeys = ({ jsonSchema }: { jsonSchema: z.core.JSONSchema.BaseSchema }) => {
  if (jsonSchema.properties?.plugins) jsonSchema.patternProperties = { "^x-": {} };
  if (hooks.every(({ name }) => jsonSchema.properties?.[name]))
    jsonSchema.additionalProperties = {
      type: ["boolean", "object"],
    } as unknown as z.core.JSONSchema.BaseSchema;
};
const schema = z.toJSONSchema(file, { io: "input", target: "draft-7", override: withOwnKeys });
const text = `${JSON.stringify(schema, null, 2)}\n`;

if (!process.argv.includes("--check")) await writeFile(FILE, text);
else if ((await readFile(FILE, "utf8").catch(() => "")) !== text) {
  console.error("config/agents.schema.json is not up to date; run `node script/schema.ts`.");
  process.exitCode = 1;
}
