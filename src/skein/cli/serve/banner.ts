// The text that `skein serve` prints after it has started.

import packageJson from "../../../../package.json" with { type: "json" };
import type { DefaultModel } from "../../../agent/agents/registry.ts";
import { kindOf, type SchemeKind } from "../../../server/auth/config.ts";
import type { ServerConfig } from "../../../server/config/server.ts";
import type { Stop } from "../signals.ts";
import { t } from "../texts.ts";

/** `model` is the default agent's model, if this process knows it. */
export function bannerOf(config: ServerConfig, address: string, model?: DefaultModel): string {
  const scheme = kindOf(config.auth.scheme);
  const words = t().serve;
  const workers = config.workers > 1 ? `, ${words.workers(config.workers)}` : "";
  const facts = `${config.store}, ${config.agents_file}${workers}`;
  return `
${words.serves(packageJson.version, address, facts)} ${config.page ? words.openOrTry : words.try}
${modelLine(model)}
${BEFORE[scheme] ?? ""}  curl -N ${address}/threads/demo/runs${WHO[scheme]} -H 'content-type: application/json' -d '{"input": "${words.example}"}'

`;
}

function modelLine(model: DefaultModel | undefined): string {
  if (model === undefined) return "";
  const { asks, isScript } = t().serve;
  return `${asks(model.name, model.reason)}${model.name === "scripted:demo" ? ` ${isScript}` : ""}\n`;
}

/** Returns a notice for a user at the terminal who pressed Ctrl-C. */
export function closingNotice(signal: Stop): string {
  if (signal !== "SIGINT" || !process.stdout.isTTY) return "";
  return `${t().serve.closing}\n`;
}

/** The credentials used in the example request. */
const WHO: Readonly<Record<SchemeKind, string>> = {
  none: "",
  api_key: ' -H "authorization: Bearer $SKEIN_API_KEY"',
  jwt: ' -H "authorization: Bearer $TOKEN"',
  plugin: ' -H "authorization: Bearer $TOKEN"',
  header: " -H 'x-skein-tenant: acme' -H 'x-skein-user: ada' -H 'x-skein-scopes: read,run'",
};

/** The commands to run before the example request. JWTs come from the identity provider. */
const BEFORE: Partial<Record<SchemeKind, string>> = {
  api_key: "  export SKEIN_API_KEY=$(npm exec -- skein keys create --user ada)\n",
};
