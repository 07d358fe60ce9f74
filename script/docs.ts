// Writes the generated tables of docs/. `--check` only compares.

import { globSync, readFileSync, writeFileSync } from "node:fs";
import { withTables } from "./docs-tables.ts";

for (const file of globSync("docs/**/*.md")) {
  const page = readFileSync(file, "utf8");
  const right = withTables(page);
  if (right === page) continue;
  if (!process.argv.includes("--check")) writeFileSync(file, right);
  else {
    console.error(`${file} has a table that is not up to date; run \`npm run docs\`.`);
    process.exitCode = 1;
  }
}
