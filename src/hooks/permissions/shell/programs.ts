// Programs and shell words that run other commands. Such a list is never complete: it limits what a prefix may allow and where
// to look for denied commands; it is not a sandbox.

/** A command begins right after these words. */
export const OPENERS: ReadonlySet<string> = new Set(
  "if then else elif while until do ! { coproc function".split(" "),
);

/** These run the command that stands among their own arguments. */
export const WRAPPERS: ReadonlySet<string> = new Set(
  [
    "env sudo doas runuser setpriv gosu su-exec nohup timeout time nice ionice chrt taskset setsid stdbuf flock",
    "command builtin exec chroot nsenter unshare strace ltrace fakeroot proot tini dumb-init systemd-run",
    "dbus-run-session xvfb-run unbuffer rlwrap caffeinate busybox toybox",
  ].flatMap((line) => line.split(" ")),
);

/** These run a text, a file or their input as commands, or change what later commands mean. */
const SHELLS: ReadonlySet<string> = new Set(
  [
    "sh bash dash ash zsh ksh mksh fish csh tcsh rbash eval source . xargs parallel su ssh watch script screen",
    "tmux at batch crontab alias unalias trap hash enable bind complete compgen fc jobs let set unset export",
    "declare typeset readonly local read mapfile readarray getopts",
  ].flatMap((line) => line.split(" ")),
);

/** These run programs of a language that can start commands. */
const LANGUAGES: ReadonlySet<string> = new Set(
  "awk gawk mawk nawk sed perl python pypy ruby node deno bun php lua tclsh expect ed ex vi vim nvim emacs gdb make".split(
    " ",
  ),
);

const RESERVED: ReadonlySet<string> = new Set("for case select in done fi esac } [[ ]]".split(" "));

/** Without folders. */
export const baseName = (name: string): string => name.slice(name.lastIndexOf("/") + 1);

/** The program's own name, in small letters as some file systems see it. */
export const programOf = (name: string): string => baseName(name).toLowerCase();

/** `python3.12` is `python`. */
const family = (program: string) => (/\d/.test(program) ? program.replace(/[\d.-]+$/, "") : program);

/** Whether it runs what is written somewhere in its arguments, its files or its input. */
export const isInterpreter = (name: string): boolean =>
  SHELLS.has(programOf(name)) || LANGUAGES.has(family(programOf(name)));

/** Whether to let it run is to let anything run, or no command at all. */
export function isNeverAllowed(name: string): boolean {
  const program = programOf(name);
  return [WRAPPERS, SHELLS, OPENERS, RESERVED].some((names) => names.has(program));
}

/**
 * Programs that read or show, and the arguments that make them run or write something. Long options may be
 * shortened, so their beginnings count.
 */
const ARGUMENTS_THAT_RUN: ReadonlyMap<string, (args: readonly string[]) => boolean> = new Map([
  ["find", anyOf(/^-(exec|ok|delete|fls|fprint)/)],
  ["fd", anyOf(/^-[a-z\d]*x|^--e/i)],
  ["fdfind", anyOf(/^-[a-z\d]*x|^--e/i)],
  [
    "git",
    anyOf(
      /^-[cCxOu]|^--(e(x|=|$)|u(p|=|$)|rec|op|ou|conf|git|work|textc)|::|^(config|bisect|submodule|difftool|mergetool|filter-branch)$/,
    ),
  ],
  ["tar", anyOf(/^-?[a-z\d]*[IF]|^--(c[hk]|to|us|rs|inf|new|rm)/)],
  ["rg", anyOf(/^--(pre|hostname)/)],
  ["sort", anyOf(/^-[a-z\d]*o|^--(o|co)/i)],
  ["rsync", anyOf(/^-[a-z\d]*e|^--rs/i)],
  ["scp", anyOf(/^-[a-z\d]*[oSF]/i)],
  ["wget", anyOf(/^-[a-z\d]*e|^--(e|use-a)/i)],
  ["man", anyOf(/^-[a-z\d]*[PHC]|^--(p|h|con)/)],
  ["less", anyOf(/^\+|^-[a-z]*[oOkK]|^--(log|lesskey)/)],
  ["zip", anyOf(/^-[a-z]*T|^--(u|t)/)],
  ["printf", anyOf(/^-v/)],
  ["test", anyOf(/^-[vR]$/)],
  ["awk", anyOf(/system|getline|[|>@]|^-[^Fv]/)],
  ["gawk", anyOf(/system|getline|[|>@]|^-[^Fv]/)],
  ["mawk", anyOf(/system|getline|[|>@]|^-[^Fv]/)],
  ["sed", isElaborateSed],
]);

/** Whether these arguments make the program run another, or write although it is known for reading. */
export const runsAnother = (name: string, args: readonly string[]): boolean =>
  ARGUMENTS_THAT_RUN.get(programOf(name))?.(args) ?? false;

/** Whether the arguments of the program decide what it is, and so must be known. */
export const hasDangerousArguments = (name: string): boolean => ARGUMENTS_THAT_RUN.has(programOf(name));

function anyOf(pattern: RegExp): (args: readonly string[]) => boolean {
  return (args) => args.some((arg) => pattern.test(arg));
}

/** Its scripts can run commands and write files: only printing lines and one replacement are known not to. */
function isElaborateSed(args: readonly string[]): boolean {
  const options = args.filter((arg) => arg.startsWith("-"));
  const script = args.find((arg) => !arg.startsWith("-")) ?? "";
  const isSimple = /^(\d+|\$)?(,(\d+|\$))?p$|^s\/[^/\\\n]*\/[^/\\\n]*\/[gpI\d]*$/.test(script);
  return !isSimple || options.some((option) => !/^-[nEri]$/.test(option));
}
