// What `skein serve` prints once it serves.

import packageJson from "../../../../package.json" with { type: "json" };
import type { DefaultModel } from "../../../agent/agents/registry.ts";
import { kindOf, type SchemeKind } from "../../../server/auth/config.ts";
import type { ServerConfig } from "../../../server/config/server.ts";
import type { Stop } from "../signals.ts";

/** `model`: what the default agent asks, where this process knows it. */
export function bannerOf(config: ServerConfig, address: string, model?: DefaultModel): string {
  const scheme = kindOf(config.auth.scheme);
  const workers = config.workers > 1 ? `, ${config.workers} workers` : "";
  return `
Skein ${packageJson.version} serves on ${address} (${config.store}, ${config.agents_file}${workers}). ${config.page ? "Open it in a browser, or try:" : "Try it:"}
${modelLine(model)}
${BEFORE[scheme] ?? ""}  curl -N ${address}/threads/demo/runs${WHO[scheme]} -H 'content-type: application/json' -d '{"input": "Hello, what can you do?"}'

`;
}

function modelLine(model: DefaultModel | undefined): string {
  if (model === undefined) return "";
  const how = " It is a script: set ANTHROPIC_API_KEY or OPENAI_API_KEY, or name a model in agents.yaml.";
  return `The default agent asks ${model.name}, ${model.reason}.${model.name === "scripted:demo" ? how : ""}\n`;
}

/** For a person at the terminal, who has pressed Ctrl-C. */
export function closingNotice(signal: Stop): string {
  if (signal !== "SIGINT" || !process.stdout.isTTY) return "";
  return "Shutting down: runs at work may end first. Press Ctrl-C again to quit at once.\n";
}

/** The credentials of the example request. */
const WHO: Readonly<Record<SchemeKind, string>> = {
  none: "",
  api_key: ' -H "authorization: Bearer $SKEIN_API_KEY"',
  jwt: ' -H "authorization: Bearer $TOKEN"',
  plugin: ' -H "authorization: Bearer $TOKEN"',
  header: " -H 'x-skein-tenant: acme' -H 'x-skein-user: ada' -H 'x-skein-scopes: read,run'",
};

/** Commands to run before the example request. JWTs come from the identity provider. */
const BEFORE: Partial<Record<SchemeKind, string>> = {
  api_key: "  export SKEIN_API_KEY=$(npm exec -- skein keys create --user ada)\n",
};
