// Writes docs/reference/api: the exported types of the packages, without comments and sorted by name. Every change to a
// public signature therefore appears in the diff of a commit. `--check` only compares. Each entry of `exports` in
// package.json has a page. used.api.md contains the types that those pages mention but no entry exports.

import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { type Node, SyntaxKind } from "typescript/unstable/ast";
import { API, type Project, type Symbol as Sign, SymbolFlags } from "typescript/unstable/sync";

const REPORTS = "docs/reference/api";
/** The folder of the compiled declarations, where the types of packages are found. */
const DECLARATIONS = resolve("node_modules/.cache/skein-api");
/** Generated from openapi.yaml, so script/openapi.ts compares it. */
const GENERATED = join(DECLARATIONS, "client", "wire.d.ts");

/** The name of each page, and its declaration file. */
function entryPoints(): { page: string; file: string }[] {
  const { exports } = JSON.parse(readFileSync("package.json", "utf8"));
  return Object.entries<{ types?: string }>(exports)
    .filter(([, { types }]) => types !== undefined)
    .map(([name, { types = "" }]) => ({
      page: `skein${name.slice(1).replaceAll("/", "-")}`,
      file: types.replace("./dist", DECLARATIONS),
    }));
}

function openDeclarations(files: readonly string[]): { api: API; project: Project } {
  rmSync(DECLARATIONS, { recursive: true, force: true });
  execFileSync(
    "tsc",
    ["-p", "tsconfig.build.json", "--emitDeclarationOnly", "--singleThreaded", "--outDir", DECLARATIONS],
    {
      stdio: "inherit",
    },
  );
  const config = join(DECLARATIONS, "tsconfig.json");
  const compilerOptions = { types: ["node"], noEmit: true };
  writeFileSync(config, JSON.stringify({ extends: resolve("tsconfig.json"), compilerOptions, files }));
  const api = new API();
  const project = api.updateSnapshot({ openProjects: [config] }).getProject(config);
  if (!project) throw new Error(`The compiler opened no project for ${config}.`);
  return { api, project };
}

/** Reads the code blocks of the pages from the declarations. */
function createReader({ checker, program, emitter }: Project) {
  const target = (sign: Sign) => (sign.flags & SymbolFlags.Alias ? checker.getAliasedSymbol(sign) : sign);

  /**
   * Returns the statements in our code that declare it. Returns none for a parameter, a member or an export of another
   * package.
   */
  function statementsOf(sign: Sign): Node[] {
    return sign.declarations
      .filter(({ path }) => path.startsWith(`${DECLARATIONS}/`) && path !== GENERATED)
      .map((handle) => statementOf(handle.resolve()))
      .filter((node) => node !== undefined);
  }

  return {
    exportsOf(file: string): { name: string; sign: Sign }[] {
      const source = program.getSourceFile(file);
      const module = source && checker.getSymbolAtLocation(source);
      if (!module) throw new Error(`\`${file}\` is no module.`);
      return checker.getExportsOfModule(module).map((sign) => ({ name: sign.name, sign: target(sign) }));
    },
    namedIn(sign: Sign): Sign[] {
      const names = statementsOf(sign).flatMap(identifiersIn);
      const found = checker.getSymbolAtLocation(names).filter((each) => each !== undefined);
      return found.map(target).filter((each) => statementsOf(each).length > 0);
    },
    /** The name of a package's module contains its path, which differs between machines. */
    nameOf: ({ name }: Sign) => /^"?.*\/node_modules\/((?:@[^/]+\/)?[^/"]+)/.exec(name)?.[1] ?? name,
    textOf: (sign: Sign) => statementsOf(sign).map((node) => emitter.printNode(node)),
  };
}

/** Returns the statement of the module that contains this declaration. */
function statementOf(node: Node | undefined): Node | undefined {
  const isVariable = node?.kind === SyntaxKind.VariableDeclaration;
  const statement = isVariable ? node.parent.parent : node;
  return statement?.parent?.kind === SyntaxKind.SourceFile ? statement : undefined;
}

function identifiersIn(node: Node): Node[] {
  const found: Node[] = [];
  const visit = (each: Node): void => {
    if (each.kind === SyntaxKind.Identifier) found.push(each);
    each.forEachChild(visit);
  };
  visit(node);
  return found;
}

type Reader = ReturnType<typeof createReader>;

/** Returns the text of each page. */
function reportsOf(reader: Reader): ReadonlyMap<string, string> {
  const pages = new Map<string, string>();
  const exported = new Map<number, Sign>();
  for (const { page, file } of entryPoints()) {
    const lines = reader.exportsOf(file).map(({ name, sign }) => {
      exported.set(sign.id, sign);
      const own = reader.nameOf(sign);
      const renamed = name === own ? [] : [`export { ${own} as ${name} };`];
      const texts = reader.textOf(sign);
      return { name, text: [...renamed, ...(texts.length > 0 ? texts : [`export { ${name} };`])].join("\n") };
    });
    pages.set(page, pageOf(`# ${page.replaceAll("-", "/")}`, lines));
  }
  const used = closureOf(reader, exported);
  const lines = used.map((sign) => ({ name: sign.name, text: reader.textOf(sign).join("\n") }));
  pages.set("used", pageOf("# Types that the exports use", lines));
  return pages;
}

/** Returns everything that `exported` refers to, directly or indirectly, but does not contain. */
function closureOf(reader: Reader, exported: ReadonlyMap<number, Sign>): Sign[] {
  const all = new Map(exported);
  for (const sign of all.values())
    for (const named of reader.namedIn(sign)) if (!all.has(named.id)) all.set(named.id, named);
  return [...all.values()].filter(({ id }) => !exported.has(id));
}

const NOTE = "`npm run api` writes this file. openapi.yaml describes the types of `src/client/wire.ts`.";

function pageOf(title: string, declarations: readonly { name: string; text: string }[]): string {
  const sorted = declarations.toSorted((a, b) => compare(a.name, b.name) || compare(a.text, b.text));
  return `${title}\n\n${NOTE}\n\n\`\`\`ts\n${sorted.map(({ text }) => text).join("\n\n")}\n\`\`\`\n`;
}

const compare = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0);

function writtenIn(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}

const { api, project } = openDeclarations(entryPoints().map(({ file }) => file));
try {
  mkdirSync(REPORTS, { recursive: true });
  for (const [page, text] of reportsOf(createReader(project))) {
    const file = `${REPORTS}/${page}.api.md`;
    if (!process.argv.includes("--check")) writeFileSync(file, text);
    else if (writtenIn(file) !== text) {
      console.error(
        `${file} is not up to date: a public type has changed. Run \`npm run api\`, and look at the diff.`,
      );
      process.exitCode = 1;
    }
  }
} finally {
  api.close();
}
