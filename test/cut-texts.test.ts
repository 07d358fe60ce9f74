import { expect, test } from "vitest";
import { z } from "zod";
import { failureOf, ProviderError } from "../src/agent/models/failure.ts";
import { nameIn } from "../src/agent/models/reply.ts";
import { check, sentence } from "../src/lib/check.ts";
import { firstChars, headTail, lastChars } from "../src/lib/text.ts";
import { schemaFault } from "../src/lib/untrusted-schema/index.ts";
import { titleOf } from "../src/wires/acp/tool-call.ts";
import { LONG } from "./support/long.ts";

/** A name, and what it makes of a long text. A path that is added to the program is added here. */
const CUTS: readonly (readonly [string, (text: string) => string])[] = [
  ["the start of a text", (text) => firstChars(text, 1001)],
  ["the end of a text", (text) => lastChars(text, 1001)],
  [
    "both ends of an output",
    (text) => {
      const kept = headTail(501);
      kept.push(text);
      return kept.read().text;
    },
  ],
  [
    "the words of a provider that fails",
    (text) =>
      failureOf(new ProviderError("failed", { body: { error: { message: text } } }), { model: "x:y" })
        .message,
  ],
  ["the name of a tool call", nameIn],
  ["the title of a call in an editor", (text) => titleOf("execute", { command: text })],
  [
    "a value that is refused",
    (text) => {
      const checked = check(z.object({ name: z.enum(["a"]) }), { name: text });
      return "faults" in checked ? checked.faults.map((fault) => sentence(fault, text)).join("\n") : "";
    },
  ],
  [
    "a value that a tool's schema refuses",
    (text) =>
      schemaFault({
        ...{ keyword: "const", params: { allowedValue: text } },
        ...{ instancePath: "", schemaPath: "" },
      }),
  ],
];

test.each(CUTS)("cuts %s between characters", (_, cut) => {
  for (const text of LONG) {
    const shown = cut(text);
    expect(shown).not.toBe("");
    expect(shown.length).toBeLessThan(text.length);
    expect(shown.isWellFormed()).toBe(true);
  }
});
