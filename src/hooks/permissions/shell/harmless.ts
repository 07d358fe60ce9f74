// What programs do that runs no other program: for each program the options, subcommands and scripts that are known to be
// harmless. Any other use is asked about or denied: a missing entry costs a question and never opens
// a way around a rule. Writing files is harmless in this sense. Abbreviated options are not resolved: they are not listed.

import { baseName } from "./programs.ts";

/** The harmless use of a program. Every word that begins with `-` must be listed, wherever it stands. */
interface Use {
  /** Single letters, which may be bundled. */
  readonly flags?: string;
  /** Single letters that take a value: the rest of their word, or the next word. */
  readonly valued?: string;
  /** Long options; each may have a value behind `=`. */
  readonly long?: string;
  /** Whole words that begin with `-`, for programs that bundle nothing. */
  readonly words?: string;
  /** Every other word. */
  readonly operand?: RegExp;
  /** In place of all that is above. */
  readonly check?: (args: readonly string[]) => boolean;
  /** The first word that is no option names one of these. */
  readonly subcommands?: Readonly<Record<string, Use>>;
  /** Runs what files of the workspace say. A rule may allow it by name; a rule that denies takes it for anything. */
  readonly runsProject?: true;
}

const listed = (text: string): string[] => text.split(/\s+/).filter((word) => word !== "");

/** None of their options and arguments runs a program or sets a variable. */
const INERT: ReadonlySet<string> = new Set(
  listed(`
    : true false echo printenv pwd cd sleep exit break continue shift yes arch cal date df du free groups hostname id nproc ps pgrep
    stat tty uname uptime whoami which type getconf locale users cat tac head tail wc nl od hexdump xxd strings cut paste tr rev
    fold fmt expand unexpand column comm join uniq shuf seq look tsort ptx basename dirname dir vdir ls tree realpath readlink
    file cksum sum md5sum sha1sum sha224sum sha256sum sha384sum sha512sum b2sum base32 base64 diff cmp grep egrep fgrep jq expr
    numfmt factor touch mkdir rmdir mktemp cp mv rm ln link unlink chmod chown chgrp truncate sync tee dd shred gzip gunzip zcat
    bzip2 bunzip2 bzcat xz unxz xzcat zstd zstdcat unzip
  `),
);

/** No shell and no program takes them for what to run or where to look for it. */
export const isHarmlessVariable = (name: string): boolean =>
  /^([a-z][a-z\d_]*|NODE_ENV|CI|LANG|LC_[A-Z]+|TZ|TERM|COLUMNS|LINES|NO_COLOR|FORCE_COLOR|DEBUG|VERBOSE|RUST_LOG|RUST_BACKTRACE|LOG_LEVEL|PORT|HOST|PYTHONUNBUFFERED|PYTHONDONTWRITEBYTECODE|DEBIAN_FRONTEND|TESTS|SEED)$/.test(
    name,
  ) && !/^(path|cdpath|fpath|module_path|manpath|mailpath|ifs|[a-z]+_proxy)$/.test(name);

/** They write where their arguments say. */
const WRITERS: ReadonlySet<string> = new Set(
  listed(`cp mv ln link tee dd tar unzip gzip gunzip bzip2 bunzip2 xz unxz zstd xxd tree cd chmod rsync scp
    curl wget sed split uniq shuf zip`),
);

/** Folders of programs, and files that say what programs run: hooks, configuration, start-up files. */
const PLACES_THAT_RUN = [
  /(?:^|[/=]|^-\w+)\.(?:(?:git|gitconfig|husky|bash\w*|profile|zsh\w*|ssh|npmrc|wgetrc|curlrc|inputrc|lesskey|config)(?:\/|$)|[^/=*]*\*)/,
  /^(?:[^/=]*=|-\w)?(?:\/|~|\.\.).*\/s?bin(?:\/|$)/,
  /^(?:[^/=]*=|-\w)?(?:\/|~\/|(?:\.\.\/)+)(?:usr\/)?(?:local\/)?(?:s?bin|lib(?:exec|x?\d*)|etc)(?:\/|$)/,
];
const isPlaceThatRuns = (path: string) => PLACES_THAT_RUN.some((place) => place.test(path));

/**
 * Whether the command writes, or goes to, where other programs find what to run. `outputs` are the files that it is redirected
 * to write.
 */
export function changesWhatRuns(
  name: string,
  args: readonly Argument[],
  outputs: readonly Argument[],
): boolean {
  if (outputs.length === 0 && !WRITERS.has(baseName(name))) return false;
  return [...args, ...outputs].some(
    (word) =>
      isPlaceThatRuns(word.text) ||
      (word.isOpaque && (WRITERS.has(baseName(name)) || outputs.includes(word))),
  );
}

const GIT_LONG = `
  abbrev abbrev-commit abbrev-ref after all all-match allow-empty allow-empty-message amend and author author-date-order base
  before binary bare branch branches break break-rewrites brief cached cached check cherry cherry-mark cherry-pick clear-decorations
  color color-words column columns combined-all-paths committer contains count count-matches create cumulative current
  cut-underlines date date-order dated decorate decorate-refs decorate-refs-exclude delete deleted depth detach diff-algorithm
  diff-filter diff-merges dirstat discard dry-run exact-match exclude exclude-standard extended-regexp
  first-parent files-with-matches files-without-match find-copies find-copies-harder find-renames first fixed-strings follow
  force force-with-lease format forked function-context full-diff full-history full-index full-name
  graph grep heading histogram ignore-all-space ignore-blank-lines ignore-case ignore-cr-at-eol ignore-errors
  ignore-other-worktrees ignore-removal ignore-space-at-eol ignore-space-change ignore-submodules ignored include-untracked
  index initial-branch intent-to-add invert-grep invert-match irreversible-delete is-ancestor is-inside-work-tree
  keep-index left-only left-right line-number list local long max-count max-depth merge-base merged merges message
  min-parents minimal modified move name-only name-rev name-status no-abbrev no-abbrev-commit no-all no-color no-commit no-contains
  no-decorate no-edit no-ext-diff no-ff no-index no-indent-heuristic no-merged no-merges no-patch no-prefix no-rebase
  no-recurse-submodules no-renames no-stat no-tags no-textconv no-track no-verify no-walk not null numstat octopus oneline only
  or order orphan others ours parents patch patch-with-raw patch-with-stat patience perl-regexp pickaxe-all pickaxe-regex
  points-at porcelain pretty progress prune quiet raw rebase reflog regexp-ignore-case relative remotes remove-empty renames
  reset-author reverse right-only set-upstream set-upstream-to shallow-since short short-commit shortstat show-current show-function
  show-notes show-number show-prefix show-pulls show-stash show-superproject-working-tree show-toplevel signoff simplify-by-decoration
  simplify-merges since single-branch skip soft hard mixed merge keep sort source ff ff-only squash abort continue quit
  stage staged stash stat summary symbolic symbolic-full-name tags theirs topo-order track unified unmerged
  unset-upstream unshallow until untracked untracked-files update update-head-ok verbose verify version walk-reflogs word-diff
  word-diff-regex word-regexp worktree show-ref no-pager
  glob text no-signoff no-verify-signatures autosquash autostash no-autostash onto root no-quiet no-keep-index heads dereference
  exclude-existing hash tag get get-all get-regexp show-origin show-scope name type list-cmds
`;

const git = (flags = "", valued = "", more: Omit<Use, "flags" | "valued"> = {}): Use => ({
  flags,
  valued,
  long: GIT_LONG,
  ...more,
});
/** `ext::…` runs a command. */
const ADDRESS_OF_REPOSITORY = { operand: /^(?!.*::)/s };

const DIFFS = "pusabcRtwWzmMCDBr0123456789";
const GIT: Use = {
  long: "no-pager version no-optional-locks",
  subcommands: {
    add: git("AufnNvp"),
    am: git("q3"),
    apply: git("Rv3z", "p", { long: `${GIT_LONG} reject 3way numstat` }),
    blame: git("bltscwMCfenps", "LSM"),
    branch: git("adDrvflmMcCqit", "u"),
    "cat-file": git("petsP", "", { long: "batch batch-check allow-unknown-type" }),
    checkout: git("fqtlmp23dN", "bB"),
    "check-ignore": git("vqnz"),
    cherry: git("v"),
    "cherry-pick": git("xn", "m"),
    "count-objects": git("vH"),
    clean: git("dfnqxX", "e"),
    clone: git("qvnl", "bj", {
      ...ADDRESS_OF_REPOSITORY,
      long: "quiet verbose progress no-checkout depth branch single-branch no-tags shallow-since bare",
    }),
    commit: git("aqvsnpi0z", "mFC", { long: `${GIT_LONG} file fixup reuse-message` }),
    config: {
      long: "get get-all get-regexp list local global show-origin show-scope name-only null",
      flags: "lz",
      check: isGitConfigRead,
    },
    describe: git("", "", { long: `${GIT_LONG} always dirty candidates match` }),
    diff: git(DIFFS, "GSUlO"),
    "diff-tree": git(`${DIFFS}v`, "GSUl"),
    fetch: git("aptnqvf46u", "j", ADDRESS_OF_REPOSITORY),
    "for-each-ref": git(),
    "format-patch": git("nNks0123456789", "o"),
    grep: git("niIlLcwvhHoqpEFPWzar0123456789", "efABCm"),
    init: git("qb", "b", { long: "quiet bare initial-branch" }),
    log: git(`${DIFFS}gqiEFP`, "nGSULl"),
    "ls-files": git("cdmoisuktvz", "x"),
    "ls-remote": git("hbtq", "", ADDRESS_OF_REPOSITORY),
    "ls-tree": git("drtlz"),
    merge: git("nqve", "mF"),
    "merge-base": git("a"),
    mv: git("fknv"),
    "name-rev": git(),
    pull: git("qvrnapft46", "j", ADDRESS_OF_REPOSITORY),
    push: git("undfqv46", "", ADDRESS_OF_REPOSITORY),
    rebase: git("qvfn"),
    reflog: git(`${DIFFS}g`, "n"),
    remote: git("v", "", ADDRESS_OF_REPOSITORY),
    reset: git("qNp"),
    restore: git("SWqpm", "s"),
    "rev-list": git("gi0123456789", "n"),
    "rev-parse": git("q"),
    revert: git("ns", "m"),
    rm: git("fnrq"),
    shortlog: git("nsec", "w"),
    show: git(`${DIFFS}q`, "nGSUL"),
    "show-branch": git("ar"),
    "show-ref": git("dhsq"),
    "sparse-checkout": git(),
    stash: git(`${DIFFS}qkna`, "m"),
    status: git("sbvuzM", "u"),
    switch: git("dfqtm", "cC"),
    tag: git("afldnvi0123456789", "mF"),
    "symbolic-ref": git("q"),
    version: {},
    worktree: git("fdvb", "bB"),
  },
};

/** Reads only: what is written there may be run by later commands. */
function isGitConfigRead(args: readonly string[]): boolean {
  const [first = ""] = args;
  return (
    /^(--get|--get-all|--get-regexp|--list|-l|--local|--global|--show-origin)$/.test(first) &&
    args.every(
      (arg) =>
        !arg.startsWith("-") ||
        /^(--(get|get-all|get-regexp|list|local|global|show-origin|show-scope|name-only|null)|-[lz])$/.test(
          arg,
        ),
    ) &&
    args.some((arg) => /^(--get(-all|-regexp)?|--list|-l)$/.test(arg))
  );
}

/** Each word is one of these, or no option. */
const FIND = `-name -iname -path -ipath -wholename -iwholename -regex -iregex -regextype -type -xtype -maxdepth -mindepth -depth -d
  -print -print0 -printf -ls -prune -quit -not -a -and -o -or -true -false -empty -size -mtime -mmin -atime -amin -ctime -cmin -newer
  -anewer -cnewer -newermt -perm -user -group -uid -gid -nouser -nogroup -links -inum -samefile -lname -ilname -follow -L -H -P
  -mount -xdev -daystart -readable -writable -executable -noleaf -warn -nowarn -E -s -x -1 -2 -3 -4 -5 -6 -7 -8 -9
  -0 -10 -14 -15 -20 -30 -60 -90 -100 -120 -180 -365 -O1 -O2 -O3 -quit`;

const RG = `after-context before-context context count count-matches color colors column case-sensitive ignore-case crlf debug encoding
  file files files-with-matches files-without-match fixed-strings follow glob glob-case-insensitive heading hidden iglob
  include-zero invert-match json line-buffered line-number line-regexp max-columns max-columns-preview max-count max-depth max-filesize
  mmap multiline multiline-dotall no-config no-heading no-hidden no-ignore no-ignore-vcs no-line-number no-messages null null-data
  no-filename one-file-system only-matching passthru pcre2 path-separator pretty quiet regexp replace smart-case sort sortr stats text
  threads trim type type-list type-not unrestricted version vimgrep with-filename word-regexp`;

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

const USES: ReadonlyMap<string, Use> = new Map<string, Use>([
  ["git", GIT],
  ["find", { words: FIND }],
  [
    "fd",
    {
      flags: "HIsiguFapLl0q1",
      valued: "dtesSEc",
      long: "hidden no-ignore case-sensitive ignore-case glob regex fixed-strings absolute-path follow full-path max-depth min-depth type extension size exclude color max-results",
    },
  ],
  ["rg", { flags: "acFHhiIlLnNopqsSUuvwxzP0.", valued: "ABCEefgjmMrtTd", long: RG }],
  ["tar", { check: isTar }],
  [
    "sort",
    {
      flags: "bdfgiMhnRrVcCmsuz",
      valued: "ktST",
      long: "reverse unique numeric-sort key field-separator human-numeric-sort version-sort stable ignore-case zero-terminated check",
    },
  ],
  ["sed", { check: isSimpleSed }],
  ...["awk", "gawk", "mawk"].map((name): [string, Use] => [name, { check: isSimpleAwk }]),
  [
    "split",
    {
      flags: "dxeu",
      valued: "abClnt",
      long: "bytes lines number suffix-length numeric-suffixes hex-suffixes additional-suffix verbose",
    },
  ],
  [
    "zip",
    { flags: "rqv0123456789jmuyXDeldgokxi", long: "recurse-paths quiet verbose junk-paths exclude include" },
  ],
  [
    "curl",
    {
      flags: "sSfLIivgkGNOJRBa0#64lpn",
      valued: "oXHdFAeubcwmCrTxz",
      long: "silent show-error fail fail-with-body location head include verbose insecure get output remote-name request header data data-raw data-binary data-urlencode form user-agent referer user cookie cookie-jar write-out max-time connect-timeout retry retry-delay compressed json url http1.1 http2 create-dirs continue-at range upload-file proxy no-progress-meter progress-bar",
    },
  ],
  [
    "wget",
    {
      flags: "qvcNSkrpmxbdEHKL46",
      valued: "OPoTtwUlARDiI",
      long: "quiet verbose no-verbose continue output-document directory-prefix timeout tries no-check-certificate header user-agent post-data method body-data recursive level no-parent no-clobber timestamping spider progress show-progress",
    },
  ],
  ["scp", { flags: "rpqvCB346", valued: "Pl", operand: /^[\w./@:~+][\w./@:~+-]*$/ }],
  [
    "rsync",
    {
      flags: "avzrltpgoDnhuPcxHAXSWmiqRkLKyI0",
      valued: "fBT",
      long: "archive verbose compress recursive delete dry-run exclude include progress human-readable stats update checksum links perms times partial relative itemize-changes size-only ignore-existing existing max-size min-size",
      operand: /^[^:]*$/,
    },
  ],
  [
    "less",
    {
      flags: "NSRFXiIgGMmnsEeqQ",
      long: "quit-if-one-screen RAW-CONTROL-CHARS chop-long-lines",
      operand: /^[^+]/,
    },
  ],
  ["more", { flags: "dflpcsu0123456789", operand: /^[^+]/ }],
  ["man", { flags: "fkaw", long: "whatis apropos all where", operand: /^\w[\w.:-]*$/ }],
  ["printf", { check: ([format = ""]) => !format.startsWith("-") }],
  ["test", { check: isTest }],
  ["[", { check: (args) => args.at(-1) === "]" && isTest(args.slice(0, -1)) }],
  ["read", { flags: "r", operand: /^[a-z_][a-z\d_]*$/ }],
  ["wait", { operand: /^\d+$/ }],
  ["command", { check: ([option = ""]) => /^-[vV]$/.test(option) }],
  ["set", { flags: "eux", valued: "o", operand: /^(pipefail|errexit|nounset|\+[eux]+)$/ }],
  ["export", { check: (args) => args.every((arg) => isHarmlessVariable(arg.split("=", 1)[0] ?? "")) }],
  ["npm", NPM],
  ["pnpm", NPM],
  ["yarn", NPM],
  ["make", MAKE],
  ["gmake", MAKE],
  ...["python", "pypy"].map((name): [string, Use] => [name, PYTHON]),
  ...["node", "nodejs"].map((name): [string, Use] => [name, NODE]),
  ...["ruby", "perl", "php", "lua"].map((name): [string, Use] => [name, LANGUAGE]),
  ["cargo", CARGO],
  ["go", GO],
  ...PROJECT_TOOLS.map((name): [string, Use] => [name, project({ check: areToolArguments })]),
]);

/** A first word without a dash is a bundle whose letters take their values from the words behind it. */
function isTar(args: readonly string[]): boolean {
  const [first = "", ...rest] = args;
  // `host:file` is read through a remote shell.
  if (args.some((arg) => arg.includes(":"))) return false;
  if (first.startsWith("-")) return follows(TAR, args);
  return [...first].every((letter) => `${TAR.flags}${TAR.valued}`.includes(letter)) && follows(TAR, rest);
}
const TAR: Use = {
  flags: "ctxrukvzjJapPhOSmUZw",
  valued: "fCbXLNV",
  long: "create extract list append update file directory exclude verbose gzip bzip2 xz zstd strip-components one-top-level keep-old-files overwrite wildcards totals get",
};

function isTest(args: readonly string[]): boolean {
  const own = args[0] === "!" ? args.slice(1) : args;
  const [first = "", operator = ""] = own;
  if (own.length === 3) return /^([!=<>]=?|-(eq|ne|lt|le|gt|ge|nt|ot|ef))$|^==$/.test(operator);
  if (own.length === 2) return /^-[bcdefghknprstuwxzLOGS]$/.test(first);
  return own.length < 2;
}

const LINES = String.raw`(?:\d+(?:~\d+)?|\$|/(?:[^/\\\n[]|\\[^\n])+/I?)`;
const SED_ADDRESS = new RegExp(`(?:${LINES}(?:,${LINES})?)?[ \\t]*!?[ \\t]*`, "y");
const SED_REPLACEMENTS = [..."/|#,@:"].map((mark) => {
  const part = String.raw`(?:[^${mark}\\\n[]|\\[^\n]|\[[^${mark}\]\n\\]+\])*`;
  return String.raw`s[${mark}]${part}[${mark}]${part}[${mark}][gpiI\d]*`;
});
/** Printing, deleting and replacing; a text is taken up to the end of its line. */
const SED_COMMAND = new RegExp(
  String.raw`(?:[pdqDPhHgGxlnN=]|${SED_REPLACEMENTS.join("|")})[ \t]*(?=[;\n]|$)|[aic](?:\\\n|\\?[ \t])[^\n\\]*(?=\n|$)`,
  "y",
);
const SED_GAP = /[;\s]*/y;

function isSedScript(script: string): boolean {
  let at = 0;
  const take = (token: RegExp) => {
    token.lastIndex = at;
    if (!token.test(script)) return false;
    at = token.lastIndex;
    return true;
  };
  for (;;) {
    take(SED_GAP);
    if (at === script.length) return true;
    take(SED_ADDRESS);
    if (!take(SED_COMMAND)) return false;
  }
}

/** Its scripts can run commands and write files: printing, deleting and replacing lines are known not to. */
function isSimpleSed(args: readonly string[]): boolean {
  const scripts: string[] = [];
  const others: string[] = [];
  for (let at = 0; at < args.length; at++) {
    const arg = args[at] ?? "";
    if (/^-[nErsuz]*e$/.test(arg)) scripts.push(args[++at] ?? "e");
    else if (/^--expression=/.test(arg)) scripts.push(arg.slice(13));
    else if (arg.startsWith("-") && arg !== "-") {
      if (
        !/^(-[nErsuz]*(i(\.\w+)?)?|--(quiet|silent|regexp-extended|in-place(=\.\w+)?|separate|null-data|posix))$/.test(
          arg,
        )
      )
        return false;
    } else others.push(arg);
  }
  if (scripts.length === 0) scripts.push(others.shift() ?? "e");
  return scripts.every(isSedScript);
}

function isSimpleAwk(args: readonly string[]): boolean {
  return args.every((arg) =>
    arg.startsWith("-")
      ? /^-(F|v)/.test(arg) || arg === "--" || arg === "-"
      : !/system|getline|[|>@]/.test(arg),
  );
}

/** An argument as far as it is known. */
export interface Argument {
  readonly text: string;
  readonly isLiteral: boolean;
  readonly isOpaque: boolean;
  /** It stays one word, or becomes several, that begin as its text does. */
  readonly isWhole: boolean;
}

/** `python3.12` is `python`. */
const knownUse = (name: string): Use | undefined => {
  const program = baseName(name);
  return USES.get(program) ?? (/\d/.test(program) ? USES.get(program.replace(/[\d.-]+$/, "")) : undefined);
};

/** Whether something is known of the program at all. */
export const isKnown = (name: string): boolean => INERT.has(baseName(name)) || knownUse(name) !== undefined;

/** Whether it runs no program and changes nothing that others run, with any arguments. */
export const isInert = (name: string): boolean => INERT.has(baseName(name)) && !WRITERS.has(baseName(name));

/** Whether it may run what files of the workspace say. */
export const runsProject = (name: string): boolean => knownUse(name)?.runsProject === true;

/** Whether the program is known to run no other one with these arguments. */
export function isHarmless(name: string, args: readonly Argument[]): boolean {
  if (INERT.has(baseName(name))) return true;
  const use = knownUse(name);
  if (!use) return false;
  const isOpen = use.check === undefined && use.operand === undefined && !use.subcommands;
  const known = args.every(
    ({ text, isLiteral, isWhole }) => isLiteral || (isOpen && isWhole && /^[^-+]/.test(text)),
  );
  return (
    known &&
    follows(
      use,
      args.map(({ text }) => text),
    )
  );
}

function follows(use: Use, args: readonly string[]): boolean {
  if (use.check) return use.check(args);
  if (use.subcommands) {
    const at = args.findIndex((arg) => !arg.startsWith("-"));
    const own = at === -1 ? args : args.slice(0, at);
    const { subcommands: _, ...before } = use;
    if (!follows(before, own)) return false;
    if (at === -1) return true;
    const next = Object.hasOwn(use.subcommands, args[at] ?? "") ? use.subcommands[args[at] ?? ""] : undefined;
    return next !== undefined && follows(next, args.slice(at + 1));
  }
  return args.every((arg) =>
    arg.startsWith("-") && arg !== "-" ? isOption(use, arg) : (use.operand?.test(arg) ?? true),
  );
}

const WORDS = new WeakMap<
  Use,
  { readonly long: ReadonlySet<string>; readonly words: ReadonlySet<string> | undefined }
>();

function isOption(use: Use, arg: string): boolean {
  let sets = WORDS.get(use);
  if (!sets) {
    sets = {
      long: new Set(listed(use.long ?? "")),
      words: use.words === undefined ? undefined : new Set(listed(use.words)),
    };
    WORDS.set(use, sets);
  }
  if (sets.words) return sets.words.has(arg) || /^-\d+$/.test(arg);
  if (arg === "--") return true;
  if (arg.startsWith("--")) return sets.long.has(arg.slice(2).split("=", 1)[0] ?? "");
  for (const letter of arg.slice(1)) {
    if (use.valued?.includes(letter)) return true;
    if (!use.flags?.includes(letter)) return false;
  }
  return true;
}
