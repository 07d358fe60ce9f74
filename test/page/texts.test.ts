// Which words stand in the views themselves, where no language reaches them.

import { globSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { parseAst } from "vitest/node";

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
