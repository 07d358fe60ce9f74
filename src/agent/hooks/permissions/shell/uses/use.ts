// How the table describes the harmless use of a program, and whether given arguments keep to it.

/** The harmless use of a program. Every word that begins with `-` must be listed, wherever it stands. */
export interface Use {
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
  /** In place of all members above. */
  readonly check?: (args: readonly string[]) => boolean;
  /** The first word that is no option names one of these. */
  readonly subcommands?: Readonly<Record<string, Use>>;
  /**
   * Why a rule that denies takes it for anything with these arguments, although a rule may allow it by name: that it writes files
   * that only an archive names, such as git's hooks, or opens an editor.
   */
  readonly openEnd?: (args: readonly string[]) => string | undefined;
  /** Whether its input may say what it runs: it is not allowed at the end of a pipe. */
  readonly obeysInput?: (args: readonly string[]) => boolean;
  /** The arguments that may name a file it writes. Default: all arguments. */
  readonly targets?: (args: readonly string[]) => readonly string[];
  /** Runs what files of the workspace say. A rule may allow it by name; a rule that denies takes it for anything. */
  readonly runsProject?: true;
}

/** For what only prints. */
export const PRINTS: Pick<Use, "targets"> = { targets: () => [] };

export const listed = (text: string): string[] => text.split(/\s+/).filter((word) => word !== "");

/** The use of the subcommand that the arguments name, and its own arguments; the program's own when they name none that is listed. */
export function leafOf(
  use: Use,
  args: readonly string[],
): { readonly use: Use; readonly args: readonly string[] } {
  const at = args.findIndex((arg) => !arg.startsWith("-"));
  const name = args[at] ?? "";
  const next = use.subcommands && Object.hasOwn(use.subcommands, name) ? use.subcommands[name] : undefined;
  return next ? { use: next, args: args.slice(at + 1) } : { use, args };
}

/** Whether these arguments of the program are all listed. */
export function follows(use: Use, args: readonly string[]): boolean {
  if (use.check) return use.check(args);
  if (use.subcommands) {
    const at = args.findIndex((arg) => !arg.startsWith("-"));
    const own = at === -1 ? args : args.slice(0, at);
    const { subcommands: _, ...before } = use;
    if (!follows(before, own)) return false;
    if (at === -1) return true;
    const leaf = leafOf(use, args);
    return leaf.use !== use && follows(leaf.use, leaf.args);
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
