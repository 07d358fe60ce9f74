// Highlights code. Loads a language when a block in it first appears.

import type { LanguageFn } from "highlight.js";
import highlighter from "highlight.js/lib/core";

export type Piece = string | ColouredText;
export interface ColouredText {
  /** `keyword`, `string` and others: the first part of a highlight.js scope. */
  readonly scope: string;
  readonly pieces: readonly Piece[];
}

type LanguageImport = Promise<{ readonly default: LanguageFn }>;
const LANGUAGES: Readonly<Record<string, () => LanguageImport>> = {
  bash: () => import("highlight.js/lib/languages/bash"),
  c: () => import("highlight.js/lib/languages/c"),
  cpp: () => import("highlight.js/lib/languages/cpp"),
  csharp: () => import("highlight.js/lib/languages/csharp"),
  css: () => import("highlight.js/lib/languages/css"),
  dart: () => import("highlight.js/lib/languages/dart"),
  diff: () => import("highlight.js/lib/languages/diff"),
  dockerfile: () => import("highlight.js/lib/languages/dockerfile"),
  elixir: () => import("highlight.js/lib/languages/elixir"),
  erlang: () => import("highlight.js/lib/languages/erlang"),
  go: () => import("highlight.js/lib/languages/go"),
  graphql: () => import("highlight.js/lib/languages/graphql"),
  haskell: () => import("highlight.js/lib/languages/haskell"),
  http: () => import("highlight.js/lib/languages/http"),
  ini: () => import("highlight.js/lib/languages/ini"),
  java: () => import("highlight.js/lib/languages/java"),
  javascript: () => import("highlight.js/lib/languages/javascript"),
  json: () => import("highlight.js/lib/languages/json"),
  kotlin: () => import("highlight.js/lib/languages/kotlin"),
  latex: () => import("highlight.js/lib/languages/latex"),
  less: () => import("highlight.js/lib/languages/less"),
  lua: () => import("highlight.js/lib/languages/lua"),
  makefile: () => import("highlight.js/lib/languages/makefile"),
  markdown: () => import("highlight.js/lib/languages/markdown"),
  nginx: () => import("highlight.js/lib/languages/nginx"),
  objectivec: () => import("highlight.js/lib/languages/objectivec"),
  perl: () => import("highlight.js/lib/languages/perl"),
  php: () => import("highlight.js/lib/languages/php"),
  powershell: () => import("highlight.js/lib/languages/powershell"),
  protobuf: () => import("highlight.js/lib/languages/protobuf"),
  python: () => import("highlight.js/lib/languages/python"),
  r: () => import("highlight.js/lib/languages/r"),
  ruby: () => import("highlight.js/lib/languages/ruby"),
  rust: () => import("highlight.js/lib/languages/rust"),
  scala: () => import("highlight.js/lib/languages/scala"),
  scss: () => import("highlight.js/lib/languages/scss"),
  shell: () => import("highlight.js/lib/languages/shell"),
  sql: () => import("highlight.js/lib/languages/sql"),
  swift: () => import("highlight.js/lib/languages/swift"),
  typescript: () => import("highlight.js/lib/languages/typescript"),
  vbnet: () => import("highlight.js/lib/languages/vbnet"),
  wasm: () => import("highlight.js/lib/languages/wasm"),
  xml: () => import("highlight.js/lib/languages/xml"),
  yaml: () => import("highlight.js/lib/languages/yaml"),
};

/** Alternative names that people and models use for languages. */
const ALIASES: Readonly<Record<string, string>> = {
  ...{
    sh: "bash",
    zsh: "bash",
    console: "shell",
    shellsession: "shell",
    ps1: "powershell",
    docker: "dockerfile",
  },
  ...{
    js: "javascript",
    jsx: "javascript",
    mjs: "javascript",
    cjs: "javascript",
    ts: "typescript",
    tsx: "typescript",
  },
  ...{
    py: "python",
    rb: "ruby",
    rs: "rust",
    kt: "kotlin",
    golang: "go",
    cs: "csharp",
    "c++": "cpp",
    h: "c",
    hpp: "cpp",
  },
  ...{
    html: "xml",
    svg: "xml",
    vue: "xml",
    yml: "yaml",
    jsonc: "json",
    json5: "json",
    toml: "ini",
    md: "markdown",
  },
  ...{
    tex: "latex",
    patch: "diff",
    make: "makefile",
    objc: "objectivec",
    proto: "protobuf",
    postgres: "sql",
    ex: "elixir",
  },
};

/** The maximum nesting depth to highlight. Deeper parts stay plain. */
const MAX_DEPTH = 20;

/** Returns undefined for an unknown language. Throws if its chunk cannot be loaded. */
export async function highlighted(code: string, written: string): Promise<readonly Piece[] | undefined> {
  const name = languageOf(written);
  if (name === undefined) return undefined;
  if (!highlighter.getLanguage(name)) {
    const language = await LANGUAGES[name]?.();
    if (language) highlighter.registerLanguage(name, language.default);
  }
  const { _emitter } = highlighter.highlight(code, { language: name, ignoreIllegals: true }) as unknown as {
    readonly _emitter: { readonly rootNode: HighlightNode };
  };
  return piecesOf(_emitter.rootNode, 0);
}

function languageOf(written: string): string | undefined {
  const name = written.toLowerCase();
  return [name, Object.hasOwn(ALIASES, name) ? ALIASES[name] : undefined].find(
    (each) => each !== undefined && Object.hasOwn(LANGUAGES, each),
  );
}

/** A node of the tree that highlight.js would render as HTML. */
interface HighlightNode {
  readonly scope?: string;
  readonly children: readonly (HighlightNode | string)[];
}

const piecesOf = ({ children }: HighlightNode, depth: number): Piece[] =>
  children.flatMap((child): Piece[] => {
    if (typeof child === "string") return [child];
    const pieces = depth < MAX_DEPTH ? piecesOf(child, depth + 1) : [textOf(child)];
    return child.scope === undefined ? pieces : [{ scope: child.scope.split(/[.:]/)[0] ?? "", pieces }];
  });

const textOf = ({ children }: HighlightNode): string =>
  children.map((child) => (typeof child === "string" ? child : textOf(child))).join("");
