// Languages, package managers and build tools: with these arguments they run what files of the workspace say, and nothing else.

import { listed, type Use } from "./use.ts";

const isScript = /^(?!-)(?!\/(dev|proc)\/)[^\0]+$/;

/** Options, the file of the program, and its arguments. */
const script =
  (flags: RegExp, modules?: RegExp) =>
  (args: readonly string[]): boolean => {
    const at = args.findIndex((arg) => !flags.test(arg));
    const [file, module] = [args[at], args[at + 1]];
    if (file === undefined) return args.some((arg) => /^(-V|-v|--version|--test)$/.test(arg));
    if (file === "-m" && modules) return module !== undefined && modules.test(module);
    return isScript.test(file);
  };

const project = (use: Use): Use => ({ ...use, runsProject: true });
const PYTHON = project({
  check: script(
    /^-[uBIEsSOvV]+$|^--version$/,
    /^(pytest|unittest|json\.tool|py_compile|compileall|venv|mypy|ruff|black|flake8|pylint|isort|coverage|build)$/,
  ),
});
const NODE = project({
  check: script(
    /^(-v|--version|--check|-c|--test|--watch|--experimental-strip-types|--enable-source-maps|--no-warnings|--test-reporter=(spec|tap|dot))$/,
  ),
});
const LANGUAGE = project({ check: script(/^(-w|-W|-v|-V|--version)$/) });

const NPM: Use = project({
  long: "silent workspace workspaces json version",
  subcommands: Object.fromEntries(
    listed(
      // Installing runs what packages say.
      "test t run run-script start stop restart ci install i uninstall ls list outdated view info why explain audit version root prefix prune dedupe pack search build lint add remove",
    ).map((name) => [name, { check: isNpm }]),
  ),
});

/** What comes behind `--` is the script's own. */
function isNpm(args: readonly string[]): boolean {
  const end = args.indexOf("--");
  const own = end === -1 ? args : args.slice(0, end);
  return own.every((arg) => !arg.startsWith("-") || NPM_OPTIONS.has(arg.split("=", 1)[0] ?? ""));
}
const NPM_OPTIONS = new Set(
  listed(`-D -E -O -s -S -d -w --save-dev --save-exact --save --silent --workspace --workspaces --if-present --json --production
    --omit --include --no-audit --no-fund --legacy-peer-deps --depth --all --long --parseable --dry-run --ignore-scripts --fix
    --frozen-lockfile --no-save --prefer-offline --offline --loglevel --run --coverage --bail`),
);

/** They run the tests, the plugins and the build of the workspace, with any arguments. */
const PROJECT_TOOLS = listed("pytest tsc jest vitest mocha eslint prettier biome ruff black mypy");

/** Options that name a program, or hold one. */
const RUNNING =
  /^--?(config|exec|toolexec|vettool|runner|shell|script|python-executable|init|eval|require|import|override|plugin)/;
const isToolOption = (arg: string) => /^--?[\w-]+(=[\w.,/:@*+-]*)?$/.test(arg) && !RUNNING.test(arg);
const areToolArguments = (args: readonly string[]) =>
  args.every((arg) => !arg.startsWith("-") || arg === "--" || isToolOption(arg));
const tool = (subcommands: RegExp): Use =>
  project({ check: ([verb = "", ...rest]) => subcommands.test(verb) && areToolArguments(rest) });
const CARGO = tool(
  /^(build|b|test|t|check|c|clippy|fmt|run|r|doc|bench|tree|metadata|update|clean|--version)$/,
);
const GO = tool(/^(build|test|vet|fmt|run|mod|list|version|doc|clean)$/);

const MAKE = project({
  flags: "kisnBqwtd0123456789S",
  valued: "jlCW",
  long: "silent quiet keep-going dry-run just-print always-make jobs no-print-directory print-directory output-sync directory version question",
  operand: /^[\w./%+-]+$/,
});

const COMPILERS: ReadonlySet<string> = new Set(listed("cc gcc c++ g++ clang clang++"));
/** `gcc-14` is `gcc`. */
export const isCompiler = (program: string): boolean => COMPILERS.has(program.replace(/-\d+$/, ""));

/** None of them names a program, a plugin or a file of options. `-W…` with a comma hands options on. */
const COMPILER_OPTION =
  /^-(c|S|E|o|v|w|-version|g\d?|O[0-3sgz]?|pedantic|shared|static|pthread|std=[\w+]+|[DIlLU].*|M[MDPGFTQ]*|W[\w-]*(=\d+)?|m[\w-]+(=[\w.+-]+)?)$/;
const COMPILER_FEATURE =
  /^-f(PIC|PIE|pic|pie|lto|openmp|exceptions|rtti|wrapv|sanitize=[\w,]+|visibility=\w+|no-[\w-]+|stack-protector[\w-]*|diagnostics-color(=\w+)?)$/;
const isCompilerArgument = (arg: string) =>
  !/^[@-]/.test(arg) || COMPILER_OPTION.test(arg) || COMPILER_FEATURE.test(arg);
const COMPILER = project({ check: (args) => args.every(isCompilerArgument) });

export const PROJECT_USES: readonly (readonly [program: string, use: Use])[] = [
  ["npm", NPM],
  ["pnpm", NPM],
  ["yarn", NPM],
  ["make", MAKE],
  ["gmake", MAKE],
  ["python", PYTHON],
  ["pypy", PYTHON],
  ["node", NODE],
  ["nodejs", NODE],
  ...["ruby", "perl", "php", "lua"].map((name) => [name, LANGUAGE] as const),
  ...[...COMPILERS].map((name) => [name, COMPILER] as const),
  ["cargo", CARGO],
  ["go", GO],
  ...PROJECT_TOOLS.map((name) => [name, project({ check: areToolArguments })] as const),
];
