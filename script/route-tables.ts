// Generates the route tables in docs/reference/http.md from the contract.

import { isWirePath } from "../src/server/config/wire-names.ts";

interface Operation {
  tags?: string[];
  summary?: string;
  security?: Record<string, string[]>[];
}

const MARK = "<!-- `npm run openapi` writes the tables below. -->\n";

/** Replaces the tables in `page` with the native API's `paths`, one table per tag. */
export function withRouteTables(page: string, paths: Record<string, Record<string, Operation>>): string {
  const [intro] = page.split(MARK);
  const tables = new Map<string, string[]>();
  for (const [path, operations] of Object.entries(paths)) {
    if (isWirePath(path)) continue;
    for (const [method, { tags: [tag = "other"] = [], summary = "", security = [] }] of Object.entries(
      operations,
    )) {
      const rows = tables.get(tag) ?? [];
      const route = `${method.toUpperCase()} ${path.replaceAll(/\{(\w+)\}/g, ":$1")}`;
      rows.push(`| \`${route}\` | ${summary.replaceAll("|", "\\|")} | ${accessOf(security)} |`);
      tables.set(tag, rows);
    }
  }
  const written = [...tables].map(([tag, rows]) => {
    const head = ["| route | effect | scope |", "|---|---|---|"];
    return `\n### ${tag.replace(/^./, (first) => first.toUpperCase())}\n\n${[...head, ...rows].join("\n")}\n`;
  });
  return `${intro}${MARK}${written.join("")}`;
}

/** Returns the scope that a route requires: `any` for any credentials, or `–` for none. */
function accessOf([first]: Record<string, string[]>[]): string {
  if (!first) return "–";
  const [scope = "any"] = Object.values(first).flat();
  return scope === "any" ? scope : `\`${scope}\``;
}
