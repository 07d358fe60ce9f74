// Every word of the page is in each language: no view has words of its own, and each language has each text.

import { globSync, readFileSync } from "node:fs";
import { expect, onTestFinished, test } from "vitest";
import { parseAst } from "vitest/node";
import { adminTexts } from "../../src/page/texts/admin.ts";
import { auditTexts } from "../../src/page/texts/audit.ts";
import { connectionTexts } from "../../src/page/texts/connections.ts";
import { de } from "../../src/page/texts/de.ts";
import { en } from "../../src/page/texts/en.ts";
import { scheduleTexts } from "../../src/page/texts/schedules.ts";
import { sourceTexts } from "../../src/page/texts/sources.ts";
import { toolTexts } from "../../src/page/texts/tools.ts";
import { triggerTexts } from "../../src/page/texts/triggers.ts";
import { webhookTexts } from "../../src/page/texts/webhooks.ts";
import { speak, t } from "../../src/page/texts.ts";

/** Names, and what is written the same in every language. */
const SAME_EVERYWHERE = ["Skein", "JSON", "Esc", "provider:model", "sk_…", "folder/name.txt"];
/** What a screen or a screen reader shows of these attributes are words. */
const READ = new Set(["aria-label", "title", "placeholder", "label", "alt", "question", "verb", "submit"]);

type Node = { readonly type: string; readonly [key: string]: unknown };
const isNode = (value: unknown): value is Node =>
  typeof value === "object" && value !== null && "type" in value && typeof value.type === "string";

const childrenOf = (node: Node): Node[] => Object.values(node).flat().filter(isNode);

/** The texts that an expression may be. */
function textsIn(value: unknown): string[] {
  if (!isNode(value)) return [];
  switch (value.type) {
    case "Literal":
      return typeof value.value === "string" ? [value.value] : [];
    case "TemplateLiteral":
      return (value.quasis as { value: { raw: string } }[]).map((quasi) => quasi.value.raw);
    case "JSXExpressionContainer":
      return textsIn(value.expression);
    case "ConditionalExpression":
      return [...textsIn(value.consequent), ...textsIn(value.alternate)];
    case "LogicalExpression":
      return value.operator === "&&"
        ? textsIn(value.right)
        : [...textsIn(value.left), ...textsIn(value.right)];
    case "BinaryExpression":
      return value.operator === "+" ? [...textsIn(value.left), ...textsIn(value.right)] : [];
    default:
      return [];
  }
}

function* shownIn(node: Node): Generator<string> {
  if (node.type === "JSXElement" || node.type === "JSXFragment") {
    const [tag] = childrenOf((node.openingElement ?? node) as Node);
    // Code and keys are the same in every language.
    if (tag?.name === "code" || tag?.name === "kbd") return;
    for (const child of node.children as Node[])
      if (child.type === "JSXText") yield String(child.value);
      else if (child.type === "JSXExpressionContainer") yield* textsIn(child);
  }
  if (node.type === "JSXAttribute" && READ.has(String((node.name as Node).name))) yield* textsIn(node.value);
  for (const child of childrenOf(node)) yield* shownIn(child);
}

const isSaid = (text: string) => /\p{L}{2,}/u.test(text) && !SAME_EVERYWHERE.includes(text.trim());

test("every text in a view exists in every language", () => {
  const files = globSync("src/page/**/*.tsx");
  expect(files.length).toBeGreaterThan(40);
  const found = files.flatMap((file) => {
    const program = parseAst(readFileSync(file, "utf8"), { lang: "tsx" }) as unknown as Node;
    return [...shownIn(program)].filter(isSaid).map((text) => `${file}: ${text.replace(/\s+/g, " ").trim()}`);
  });
  expect(found).toEqual([]);
});

const TEXTS = [
  ...[t, adminTexts, auditTexts, connectionTexts, scheduleTexts],
  ...[sourceTexts, toolTexts, triggerTexts, webhookTexts],
];
const VALUES = ["‹1›", "‹2›", "‹3›", "‹4›"];

/** The values that each text contains, by the text's name. Words of the server have no English text of their own. */
function textsOf(texts: unknown, name: string): [string, unknown][] {
  if (typeof texts === "function") return textsOf(texts(...VALUES), name);
  if (typeof texts === "string") return [[name, VALUES.filter((value) => texts.includes(value))]];
  if (typeof texts !== "object" || !texts || (Array.isArray(texts) && texts.length === 0))
    return [[name, "no text"]];
  return Object.entries(texts).flatMap(([key, part]) => textsOf(part, `${name}.${key}`));
}

test("every text exists in every language, and contains the same values", () => {
  onTestFinished(() => speak(en, "en"));
  const textsIn = (texts: typeof en, language: string) => {
    speak(texts, language);
    return TEXTS.flatMap((each, at) => textsOf(each(), String(at)));
  };
  const [english, german] = [textsIn(en, "en"), textsIn(de, "de")];
  expect([...english, ...german].filter(([, values]) => values === "no text")).toEqual([]);
  expect(Object.fromEntries(german)).toMatchObject(Object.fromEntries(english));
});
