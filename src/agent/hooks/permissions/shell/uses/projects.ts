// Languages, package managers and build tools. With these arguments, they execute only files of the workspace.

import { follows, listed, PRINTS, type Use } from "./use.ts";

/** True if no part of a word leads out of the workspace. */
const staysInside = (word: string): boolean =>
  word.split(/[=:,]/).every((part) => !/^(?:-\w)?(?:[/~]|\.\.(?:\/|$))|\/\.\.(?:\/|$)/.test(part));

/** True for a file of the workspace itself. False for a file of an installed package and for a URL. */
const isOwnFile = (word: string | undefined): boolean =>
  word !== undefined &&
  /^[^-]/.test(word) &&
  staysInside(word) &&
  !/^\w+:|(?:^|\/)(?:node_modules|site-packages|dist-packages)\//.test(word);

type Check = (args: readonly string[]) => boolean;

/** Accepts options followed by a program file with its arguments, or by `-m` and a listed module with accepted arguments. */
const script =
  (flags: RegExp, modules: Readonly<Record<string, Check>> = {}): Check =>
  (args) => {
    const at = args.findIndex((arg) => !flags.test(arg));
    const [file, module = "", ...others] = args.slice(at);
    if (at === -1) return args.some((arg) => /^(-V|-v|--version|--test)$/.test(arg));
    if (file === "-m") return Object.hasOwn(modules, module) && modules[module]?.(others) === true;
    return isOwnFile(file) && !/^(inspect|debug)$/.test(file ?? "");
  };

/**
 * Returns a use that executes files of the workspace. These may write anything, so the words of the line do
 * not show the targets.
 */
const project = (use: Use): Use => ({ ...use, runsProject: true, ...PRINTS });
/** Returns a use that may read the program to run from its input. */
const interpreter = (check: Check): Use => project({ check, obeysInput: () => true });

/** Matches names of tests in the workspace but no names of modules that come with Python. */
const UNITTEST = /^(?:discover|[\w./-]+\.py|(?:tests|test_\w+)(?:\.\w+)*)$/;
const UNITTEST_OPTION = /^-(?:[vqfcbk]|-verbose|-quiet|-failfast|-catch|-buffer|-locals)$/;
/** Options that are followed by a folder or a pattern. */
const UNITTEST_PLACE = /^(?:-[spt]|--start-directory|--pattern|--top-level-directory)$/;
const isUnittest: Check = (args) =>
  args.every(
    (arg, at) =>
      staysInside(arg) &&
      (UNITTEST.test(arg) ||
        UNITTEST_OPTION.test(arg) ||
        UNITTEST_PLACE.test(arg) ||
        args[at - 1] === "-k" ||
        (UNITTEST_PLACE.test(args[at - 1] ?? "") && /^(?:\.|tests$|[\w.-]+\/|[\w.*-]*\*[\w.*-]*)/.test(arg))),
  );

const ownFiles =
  (flags: RegExp): Check =>
  (args) =>
    args.every((arg) => (arg.startsWith("-") ? flags.test(arg) : isOwnFile(arg)));

const PYTHON_FLAG = /^-[uBIEsSOvV]+$|^--version$/;
const isCoverage: Check = ([verb = "", ...rest]) =>
  verb === "run"
    ? script(/^--(?:branch|append|parallel-mode|source=[\w,./-]+)$/, MODULES)(rest)
    : /^(?:report|html|xml|json|combine|erase)$/.test(verb) && areToolArguments(rest);

/** The modules that `python -m` may run, with the checks of their arguments. */
const MODULES: Readonly<Record<string, Check>> = {
  pytest: (args) => areToolArguments(args),
  unittest: isUnittest,
  // With a second file, the module would write to it.
  "json.tool": (args) =>
    ownFiles(/^--(?:sort-keys|compact|json-lines|no-ensure-ascii|tab)$/)(args) &&
    args.filter((arg) => !arg.startsWith("-")).length < 2,
  py_compile: ownFiles(/^-q$/),
  compileall: ownFiles(/^-[qfl]$/),
  venv: (args) =>
    args.every(
      (arg) =>
        staysInside(arg) && /^(?:--(?:clear|upgrade|without-pip|system-site-packages)|[^-].*)$/s.test(arg),
    ),
  coverage: (args) => isCoverage(args),
  ...Object.fromEntries(
    listed("mypy ruff black flake8 pylint isort build").map((name) => [
      name,
      (args) => areToolArguments(args),
    ]),
  ),
};

const PYTHON = interpreter(script(PYTHON_FLAG, MODULES));
const NODE = interpreter(
  script(
    /^(-v|--version|--check|-c|--test|--watch|--experimental-strip-types|--enable-source-maps|--no-warnings|--test-reporter=(spec|tap|dot))$/,
  ),
);
const LANGUAGE = interpreter(script(/^(-w|-W|-v|-V|--version)$/));

const NPM: Use = project({
  long: "silent workspace workspaces json version",
  subcommands: Object.fromEntries(
    listed(
      // Installing executes the packages' scripts.
      "test t run run-script start stop restart ci install i uninstall ls list outdated view info why explain audit version root prefix prune dedupe pack search build lint add remove",
    ).map((name) => [name, { check: isNpm }]),
  ),
});

/** Arguments after `--` belong to the script. */
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

/** Tools that run the workspace's tests, plugins and build, regardless of their arguments. */
const PROJECT_TOOLS = listed("pytest tsc jest vitest mocha eslint prettier biome ruff black mypy");

/** Options that name or contain a program, or read one from the input. */
const RUNNING =
  /^--?(config|exec|toolexec|vettool|runner|shell|script|python-executable|init|eval|require|import|override|plugin|pdb|trace$)/;
const isToolOption = (arg: string) => /^--?[\w-]+(=[\w.,/:@*+-]*)?$/.test(arg) && !RUNNING.test(arg);
const areToolArguments: Check = (args) =>
  args.every((arg) => staysInside(arg) && (!arg.startsWith("-") || arg === "--" || isToolOption(arg)));
const tool = (subcommands: RegExp): Use =>
  project({ check: ([verb = "", ...rest]) => subcommands.test(verb) && areToolArguments(rest) });
const CARGO = tool(
  /^(build|b|test|t|check|c|clippy|fmt|run|r|doc|bench|tree|metadata|update|clean|--version)$/,
);
/** Accepts only a file or a task of the workspace, because the program would download and execute a URL. */
const SCRIPTS = interpreter(
  ([verb = "", ...rest]) =>
    verb === "--version" ||
    (/^(run|test|task|check|lint|fmt|install|build)$/.test(verb) &&
      areToolArguments(rest) &&
      rest.every((arg) => arg.startsWith("-") || isOwnFile(arg))),
);
const GO: Use = project({
  check: ([verb = "", ...rest]) => {
    // Go would download and execute a module path.
    const [file] = rest.filter((arg) => !arg.startsWith("-"));
    return verb === "run"
      ? areToolArguments(rest) && /^\.|\.go$/.test(file ?? "")
      : /^(build|test|vet|fmt|mod|list|version|doc|clean)$/.test(verb) && areToolArguments(rest);
  },
});

const MAKE_OPTIONS: Use = {
  flags: "kisnBqwtd0123456789S",
  valued: "jlCW",
  long: "silent quiet keep-going dry-run just-print always-make jobs no-print-directory print-directory output-sync directory version question",
  operand: /^[\w./%+-]+$/,
};
const MAKE = project({ check: (args) => args.every(staysInside) && follows(MAKE_OPTIONS, args) });

const COMPILERS: ReadonlySet<string> = new Set(listed("cc gcc c++ g++ clang clang++"));
/** `gcc-14` counts as `gcc`. */
export const isCompiler = (program: string): boolean => COMPILERS.has(program.replace(/-\d+$/, ""));

/** Options that do not name a program, a plugin or an options file. Excludes `-W…` with a comma, which passes options on. */
const COMPILER_OPTION =
  /^-(c|S|E|o|v|w|-version|g\d?|O[0-3sgz]?|pedantic|shared|static|pthread|std=[\w+]+|[DIlLU].*|M[MDPGFTQ]*|W[\w-]*(=\d+)?|m[\w-]+(=[\w.+-]+)?)$/;
const COMPILER_FEATURE =
  /^-f(PIC|PIE|pic|pie|lto|openmp|exceptions|rtti|wrapv|sanitize=[\w,]+|visibility=\w+|no-[\w-]+|stack-protector[\w-]*|diagnostics-color(=\w+)?)$/;
const isCompilerArgument = (arg: string) =>
  !/^[@-]/.test(arg) || COMPILER_OPTION.test(arg) || COMPILER_FEATURE.test(arg);
const COMPILER: Use = { check: (args) => args.every(isCompilerArgument), runsProject: true };

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
  ...["tsx", "ts-node", "ruby", "perl", "php", "lua", "tclsh"].map((name) => [name, LANGUAGE] as const),
  ...[...COMPILERS].map((name) => [name, COMPILER] as const),
  ...["deno", "bun"].map((name) => [name, SCRIPTS] as const),
  ["cargo", CARGO],
  ["go", GO],
  ...PROJECT_TOOLS.map((name) => [name, project({ check: areToolArguments })] as const),
];
