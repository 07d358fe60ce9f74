// The git subcommands, each with the options that run no other program. Creating a bare repository is excluded, because its
// hooks and configuration would look like ordinary files.

import { PRINTS, type Use } from "./use.ts";

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
  ...PRINTS,
  ...more,
});
/** Uses whose arguments determine where git writes. */
const WRITES: Pick<Use, "targets"> = { targets: (args) => args };
/** Uses that write files under names from a patch or a commit. */
const UNPACKS = () => "writes files under names from a patch or a repository";
/** These uses accept input because a pipe may supply a patch, or the key presses for an editor that git opens. */
const WRITES_TREE = { openEnd: UNPACKS, obeysInput: () => true };
const BRANCH_ONLY = /^-[bBcC]$/;
/** Only creating a branch at the current commit leaves all files unchanged. */
const SWITCHES = {
  openEnd: (args: readonly string[]) =>
    args.length === 2 && BRANCH_ONLY.test(args[0] ?? "") ? undefined : UNPACKS(),
};
const OPENS_EDITOR = "opens an editor, or asks what to do";
const isPatch = (args: readonly string[]) =>
  args.some((arg) => /^-[a-zA-Z]*[pie]|^--(patch|interactive|edit)$/.test(arg));
/** Returns a use in which git may follow instructions from its input, which may come from a pipe. */
const asking = (asks: (args: readonly string[]) => boolean): Omit<Use, "flags" | "valued"> => ({
  openEnd: (args) => (asks(args) ? OPENS_EDITOR : undefined),
  obeysInput: asks,
});
const MESSAGE = /^-[a-zA-Z]*[mFC]|^--(message|file|reuse-message|fixup|no-edit)/;
const hasNoMessage = (args: readonly string[]) =>
  !args.some((arg) => MESSAGE.test(arg)) || args.some((arg) => /^(--fixup=)?(amend|reword):/.test(arg));

/** `ext::…` executes a command. */
const ADDRESS_OF_REPOSITORY = { operand: /^(?!.*::)/s };

const DIFFS = "pusabcRtwWzmMCDBr0123456789";
export const GIT: Use = {
  long: "no-pager version no-optional-locks",
  ...PRINTS,
  subcommands: {
    add: git("AufnNvp", "", asking(isPatch)),
    am: git("q3", "", WRITES_TREE),
    apply: git("Rv3z", "p", { long: `${GIT_LONG} reject 3way numstat`, ...WRITES_TREE }),
    blame: git("bltscwMCfenps", "LSM"),
    branch: git("adDrvflmMcCqit", "u"),
    "cat-file": git("petsP", "", { long: "batch batch-check allow-unknown-type" }),
    checkout: git("fqtlmp23dN", "bB", SWITCHES),
    "check-ignore": git("vqnz"),
    cherry: git("v"),
    "cherry-pick": git("xn", "m", WRITES_TREE),
    "count-objects": git("vH"),
    clean: git("dfnqxX", "e"),
    clone: git("qvnl", "bj", {
      ...ADDRESS_OF_REPOSITORY,
      ...WRITES_TREE,
      ...WRITES,
      long: "quiet verbose progress no-checkout depth branch single-branch no-tags shallow-since",
    }),
    commit: git("aqvsnpi0z", "mFC", {
      ...asking(
        (args) =>
          hasNoMessage(args) || args.some((arg) => /^-[aqvsn0z]*[pi]|^--(patch|interactive)$/.test(arg)),
      ),
      long: `${GIT_LONG} file fixup reuse-message`,
    }),
    config: {
      long: "get get-all get-regexp list local global show-origin show-scope name-only null",
      flags: "lz",
      check: isGitConfigRead,
      ...PRINTS,
    },
    describe: git("", "", { long: `${GIT_LONG} always dirty candidates match` }),
    diff: git(DIFFS, "GSUlO"),
    "diff-tree": git(`${DIFFS}v`, "GSUl"),
    fetch: git("aptnqvf46u", "j", ADDRESS_OF_REPOSITORY),
    "for-each-ref": git(),
    "format-patch": git("nNks0123456789", "o", WRITES),
    grep: git("niIlLcwvhHoqpEFPWzar0123456789", "efABCm"),
    init: git("qb", "b", { ...WRITES, long: "quiet initial-branch" }),
    log: git(`${DIFFS}gqiEFP`, "nGSULl"),
    "ls-files": git("cdmoisuktvz", "x"),
    "ls-remote": git("hbtq", "", ADDRESS_OF_REPOSITORY),
    "ls-tree": git("drtlz"),
    merge: git("nqve", "mF", WRITES_TREE),
    "merge-base": git("a"),
    mv: git("fknv", "", WRITES),
    "name-rev": git(),
    pull: git("qvrnapft46", "j", { ...ADDRESS_OF_REPOSITORY, ...WRITES_TREE }),
    push: git("undfqv46", "", ADDRESS_OF_REPOSITORY),
    rebase: git("qvfn", "", WRITES_TREE),
    reflog: git(`${DIFFS}g`, "n"),
    remote: git("v", "", ADDRESS_OF_REPOSITORY),
    reset: git("qNp", "", {
      obeysInput: isPatch,
      openEnd: (args) =>
        args.some((arg) => /^-[qN]*p|^--(hard|merge|keep|patch)/.test(arg)) ? UNPACKS() : undefined,
    }),
    restore: git("SWqpm", "s", { ...WRITES_TREE, obeysInput: isPatch }),
    "rev-list": git("gi0123456789", "n"),
    "rev-parse": git("q"),
    revert: git("ns", "m", WRITES_TREE),
    rm: git("fnrq"),
    shortlog: git("nsec", "w"),
    show: git(`${DIFFS}q`, "nGSUL"),
    "show-branch": git("ar"),
    "show-ref": git("dhsq"),
    "sparse-checkout": git("", "", WRITES_TREE),
    stash: git(`${DIFFS}qkna`, "m", {
      obeysInput: isPatch,
      openEnd: (args) => (/^(list|show|drop|clear)$/.test(args[0] ?? "") ? undefined : UNPACKS()),
    }),
    status: git("sbvuzM", "u"),
    switch: git("dfqtm", "cC", SWITCHES),
    tag: git(
      "afldnvi0123456789",
      "mF",
      asking((args) => args.some((arg) => /^-[fnvi]*a/.test(arg)) && hasNoMessage(args)),
    ),
    "symbolic-ref": git("q"),
    version: {},
    worktree: git("fdvb", "bB", {
      ...WRITES,
      openEnd: ([verb]) => (verb === "add" ? UNPACKS() : undefined),
    }),
  },
};

/** Allows only reads, because later commands could execute values that were written. */
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
