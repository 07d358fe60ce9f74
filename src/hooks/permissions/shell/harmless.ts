// Whether a command is known to run no other program, and to change nothing that others run. Any other use is asked about or
// denied.

import { baseName } from "./programs.ts";
import { USES } from "./uses/index.ts";
import { isCompiler } from "./uses/projects.ts";
import { follows, listed, type Use } from "./uses/use.ts";

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

/** Whether it may write files that only an archive names. */
export const unpacks = (name: string, args: readonly Argument[]): boolean =>
  knownUse(name)?.unpacks?.(args.map(({ text }) => text)) ?? false;

/** Whether the program is known to run no other one with these arguments. */
export function isHarmless(name: string, args: readonly Argument[]): boolean {
  if (INERT.has(baseName(name))) return true;
  const use = knownUse(name);
  if (!use) return false;
  const isOpen = use.check === undefined && use.operand === undefined && !use.subcommands;
  const isClear = ({ text, isLiteral, isWhole }: Argument) =>
    isLiteral || (isOpen && isWhole && /^[^-+]/.test(text));
  if (!args.every(isClear)) return false;
  return follows(
    use,
    args.map(({ text }) => text),
  );
}

/** None of their options and arguments runs a program or sets a variable. */
const INERT: ReadonlySet<string> = new Set(
  listed(`
    : true false echo printenv pwd cd sleep exit break continue shift yes arch cal date df du free groups hostname id nproc ps pgrep
    stat tty uname uptime whoami which type getconf locale users cat tac head tail wc nl od hexdump xxd strings cut paste tr rev
    fold fmt expand unexpand column comm join uniq shuf seq look tsort ptx basename dirname dir vdir ls tree realpath readlink
    file cksum sum md5sum sha1sum sha224sum sha256sum sha384sum sha512sum b2sum base32 base64 diff cmp grep egrep fgrep jq expr
    numfmt factor touch mkdir rmdir mktemp cp mv rm ln link unlink chmod chown chgrp truncate sync tee dd shred gzip gunzip zcat
    bzip2 bunzip2 bzcat xz unxz xzcat zstd zstdcat
  `),
);

/** They write where their arguments say. */
const WRITERS: ReadonlySet<string> = new Set(
  listed(`cp mv ln link tee dd tar unzip gzip gunzip bzip2 bunzip2 xz unxz zstd xxd tree cd chmod rsync scp
    curl wget sed split uniq shuf zip install`),
);

/** Subcommands of git that do. */
const GIT_WRITERS: ReadonlySet<string> = new Set(listed("clone format-patch init mv worktree"));

function isWriter(name: string, args: readonly Argument[]): boolean {
  const program = baseName(name);
  if (WRITERS.has(program) || isCompiler(program)) return true;
  return program === "git" && args.some(({ text }) => GIT_WRITERS.has(text));
}

/** Folders of programs, and files that say what programs run: hooks, configuration, start-up files. */
const PLACES_THAT_RUN = [
  /(?:^|[/={]|^-\w+)\.(?:(?:git|gitconfig|husky|bash\w*|profile|zsh\w*|ssh|npmrc|wgetrc|curlrc|inputrc|lesskey|config)(?:\/|$)|[^/=*]*\*)/,
  /^(?:[^/=]*=|-\w)?(?:\/|~|\.\.).*\/s?bin(?:\/|$)/,
  /^(?:[^/=]*=|-\w)?(?:\/|~\/|(?:\.\.\/)+)(?:usr\/)?(?:local\/)?(?:s?bin|lib(?:exec|x?\d*)|etc)(?:\/|$)/,
  // git takes a folder that has one for a repository.
  /(?:^|[/=])HEAD$|[^/]\.git(?:\/|$)/,
];
export const isPlaceThatRuns = (path: string): boolean => PLACES_THAT_RUN.some((place) => place.test(path));

/** Names of what git reads, unless it moves files. */
const REPOSITORY_OR_REVISION = /^HEAD$|[^/]\.git$/;
const readsFrom = (name: string, args: readonly Argument[]) =>
  baseName(name) === "git" && !args.some(({ text }) => text === "mv");

/**
 * Whether the command writes, or goes to, where other programs find what to run. `outputs` are the files that it is redirected
 * to write.
 */
export function changesWhatRuns(
  name: string,
  args: readonly Argument[],
  outputs: readonly Argument[],
): boolean {
  const writes = isWriter(name, args);
  if (outputs.length === 0 && !writes) return false;
  const isRead = ({ text }: Argument) => readsFrom(name, args) && REPOSITORY_OR_REVISION.test(text);
  return (
    outputs.some(({ text, isOpaque }) => isOpaque || isPlaceThatRuns(text)) ||
    args.some((arg) => (isPlaceThatRuns(arg.text) && !isRead(arg)) || (arg.isOpaque && writes))
  );
}
