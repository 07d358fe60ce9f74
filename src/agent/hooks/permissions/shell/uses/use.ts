// The format of the table of harmless uses, and the check that arguments match it.

/** A harmless use of a program. Every word that begins with `-` must be listed, regardless of its position. */
export interface Use {
  /** Single letters, which may be bundled. */
  readonly flags?: string;
  /** Single letters with a value: the rest of their word, or the next word. */
  readonly valued?: string;
  /** Long options. Each may have a value after `=`. */
  readonly long?: string;
  /** Whole words that begin with `-`, for programs that do not bundle letters. */
  readonly words?: string;
  /** A pattern for all other words. */
  readonly operand?: RegExp;
  /** Replaces all members above. */
  readonly check?: (args: readonly string[]) => boolean;
  /** Subcommands by name. The first word that is not an option selects the subcommand. */
  readonly subcommands?: Readonly<Record<string, Use>>;
  /**
   * Why a deny rule treats the program as unknown with these arguments, although an allow rule may name it.
   * Such a use writes files under names from an archive, for example git's hooks, or opens an editor.
   */
  readonly openEnd?: (args: readonly string[]) => string | undefined;
  /** True if the program may execute its input, so it is not allowed at the end of a pipe. */
  readonly obeysInput?: (args: readonly string[]) => boolean;
  /** The arguments that may name a file to write. Default: all arguments. */
  readonly targets?: (args: readonly string[]) => readonly string[];
  /**
   * The program executes files of the workspace. An allow rule may name such a program, but a deny rule
   * treats it as unknown.
   */
  readonly runsProject?: true;
}

/** Used for programs that only print. */
export const PRINTS: Pick<Use, "targets"> = { targets: () => [] };

export const listed = (text: string): string[] => text.split(/\s+/).filter((word) => word !== "");

/**
 * Returns the use and the arguments of the subcommand that the arguments select, or those of the program
 * itself if no listed subcommand is selected.
 */
export function leafOf(
  use: Use,
  args: readonly string[],
): { readonly use: Use; readonly args: readonly string[] } {
  const at = args.findIndex((arg) => !arg.startsWith("-"));
  const name = args[at] ?? "";
  const next = use.subcommands && Object.hasOwn(use.subcommands, name) ? use.subcommands[name] : undefined;
  return next ? { use: next, args: args.slice(at + 1) } : { use, args };
}

/** True if all of these arguments are listed. */
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
