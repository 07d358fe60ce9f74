// Rules in a JSON file: a list of rules, each in its short or its long form.

import { open, rename, rm } from "node:fs/promises";
import { z } from "zod";
import { AppError, messageOf } from "../../core/errors.ts";
import { check, sentence } from "../../lib/check.ts";
import { randomId } from "../../lib/random-id.ts";
import { readText } from "../../lib/read-text.ts";
import { type Rule, RuleSpec } from "./rule.ts";

const MAX_BYTES = 1024 * 1024;

/** Throws `config_invalid` with all that is wrong, one a line: the file, the place in it, what would be right. */
export async function loadRules(path: string): Promise<Rule[]> {
  const read = await readText(path, MAX_BYTES);
  if ("fault" in read) throw invalid(`${path}: the file ${read.fault}`);
  const checked = check(z.array(RuleSpec), parsed(read.text, path));
  if ("value" in checked) return checked.value;
  throw invalid(checked.faults.map((fault) => `${path}: ${sentence(fault)}`).join("\n"));
}

/**
 * Replaces the file as a whole: whoever reads it, also after a crash, finds the old rules or the new ones.
 * Throws `config_invalid` for a rule with a condition of the program's own, which cannot be written down.
 */
export async function saveRules(path: string, rules: readonly Rule[]): Promise<void> {
  const custom = rules.find(({ matcher }) => matcher.custom !== undefined);
  if (custom)
    throw invalid(`${path}: rule \`${custom.id}\` has a \`custom\` condition; a file cannot hold one`);
  const draft = `${path}.${randomId()}.draft`;
  try {
    await write(draft, `${JSON.stringify(rules, null, 2)}\n`);
    await rename(draft, path);
  } catch (error) {
    await rm(draft, { force: true });
    throw error;
  }
}

async function write(path: string, text: string): Promise<void> {
  await using file = await open(path, "wx", 0o600);
  await file.writeFile(text);
  await file.sync();
}

function parsed(text: string, path: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw invalid(`${path}: must be JSON: ${messageOf(error)}`);
  }
}

const invalid = (message: string) => new AppError("config_invalid", message);
