// Sentences say who does what to what. A reader finds those that do not by five signs, of which four can be matched.

import { globSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";

/** How many sentences of each place may have each sign. Lower these numbers when you rewrite one; never raise them. */
const ALLOWED: Readonly<Record<string, { readonly files: string; readonly signs: readonly number[] }>> = {
  documentation: { files: "{*.md,docs/**/*.md}", signs: [0, 6, 8, 0] },
  "HTTP reference": { files: "openapi.yaml", signs: [0, 0, 0, 0] },
  "loop and hooks": { files: "src/agent/{core,hooks}/**/*.ts", signs: [0, 0, 0, 1] },
  "models, tools and agents": { files: "src/agent/{models,tools,agents}/**/*.ts", signs: [0, 0, 0, 0] },
  "sandbox, lib and protocol": { files: "src/{sandbox,lib,protocol}/**/*.ts", signs: [0, 0, 0, 2] },
  "runs, quotas and admin": { files: "src/engine/{runs,quotas,admin}/**/*.ts", signs: [0, 0, 0, 0] },
  stores: { files: "src/engine/stores/**/*.ts", signs: [0, 0, 3, 0] },
  server: { files: "src/server/**/*.ts", signs: [0, 0, 0, 0] },
  wires: { files: "src/wires/**/*.ts", signs: [0, 0, 0, 0] },
  "program, library and command line": { files: "src/{skein/**/*,*}.ts", signs: [0, 0, 0, 1] },
  "client and page": { files: "src/{client,page}/**/*.{ts,tsx}", signs: [0, 0, 0, 0] },
  "scripts, examples and settings": {
    files: "{script,deploy,config,examples}/**/*.{ts,tsx,yaml}",
    signs: [0, 1, 0, 18],
  },
};

const SIGNS: readonly (readonly [name: string, found: (sentence: string) => boolean])[] = [
  [
    "begins with Of, What, Whether or Those",
    (text) => /^(?:Of|What|Whether|Those|It is \w+ that)\b(?!.*\?$)/.test(text),
  ],
  [
    "names a thing by a clause",
    (text) =>
      /\b(?:the ones? (?:that|of which)|what is|those that|in place of|so many|so long|(?:is|are|has|have) to be \w+ed)\b/i.test(
        text,
      ),
  ],
  [
    "has a thing that speaks, holds or stands",
    (text) =>
      /\b(?:a|an|the|its|each|every|which|that|it|this) (?!(?:user|person|operator|admin|model|agent|reader|author|team|client)s? )(?:[\w`.-]+ )?(?:says?|tells?|lets|holds|stands?|lies)\b/i.test(
        text,
      ),
  ],
  [
    "is long",
    (text) =>
      text.split(/\s+/).length > 28 ||
      (text.match(/;/g)?.length ?? 0) > 1 ||
      (text.match(/\bnor\b/g)?.length ?? 0) > 1,
  ],
];

test.each(Object.entries(ALLOWED))("the sentences of the %s get plainer", (_, { files, signs }) => {
  const found = SIGNS.map(() => [] as string[]);
  for (const file of globSync(files, {
    exclude: ["docs/reference/api/**", "docs/contributing/decisions/**", "src/client/wire.ts"],
  }))
    for (const sentence of sentencesOf(file, readFileSync(file, "utf8")))
      for (const [at, [, has]] of SIGNS.entries()) if (has(sentence)) found[at]?.push(`${file}: ${sentence}`);
  for (const [at, [name]] of SIGNS.entries())
    expect(found[at]?.length, `${name}:\n${found[at]?.join("\n")}`).toBeLessThanOrEqual(signs[at] ?? 0);
});

/** Plain sentences: paragraphs and cells of a page, comments of a program, descriptions of YAML. */
function sentencesOf(file: string, text: string): string[] {
  const paragraphs = file.endsWith(".md")
    ? text
        .replaceAll(/^ *```[\s\S]*?^ *```|<!--[\s\S]*?-->/gm, "")
        .split(/\n\s*\n|\n *(?=[-*|#>]|\d+\.)|(?<=\S) \| /)
    : file.endsWith("yaml")
      ? [
          ...text.matchAll(
            /(?:description|summary): (?:>-?|\|-?)?\s*([\s\S]+?)(?=\n *[\w"'$/{}-]+:|\n\n|\n *- )/g,
          ),
          ...text.matchAll(/(?:^ *#.*\n)+/gm),
        ].map(([all, own]) => own ?? all)
      : [
          ...text.matchAll(
            /(?<=^|[ \t])\/\*\*(?= |\n)[\s\S]*?\*\/|(?:^ *\/\/.*\n)+|\.describe\(\s*["`]([^"`]+)/gm,
          ),
        ].map(([all, own]) => own ?? all);
  return paragraphs
    .map((each) =>
      each
        .replaceAll(/^\s*(?:\/\*\*|\*\/|\/\/|\*|#+|>|\|)+ ?/gm, " ")
        .replaceAll(/\*\/|\[([^\]]*)\]\([^)]*\)/g, "$1"),
    )
    .flatMap((each) => each.replaceAll(/\s+/g, " ").split(/(?<=[.!?:]["')`*]*) (?=[A-Z`*])/))
    .map((each) => each.replaceAll(/^[\s*|-]+|[\s*|]+$/g, ""))
    .filter((each) => each.split(" ").length > 2);
}
