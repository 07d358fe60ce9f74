// Programs and shell words that run other commands. The lists cannot be complete, so a program that is not on a list is not
// automatically safe. The lists also show operators early which rules could never allow anything.

/** Words that come directly before a command. */
const OPENERS: ReadonlySet<string> = new Set(
  "if then else elif while until do ! { coproc function".split(" "),
);

/** Programs that run a command from their own arguments. */
const WRAPPERS: ReadonlySet<string> = new Set(
  [
    "env sudo doas runuser setpriv gosu su-exec nohup timeout time nice ionice chrt taskset setsid stdbuf flock",
    "command builtin exec chroot nsenter unshare strace ltrace fakeroot proot tini dumb-init systemd-run",
    "dbus-run-session xvfb-run unbuffer rlwrap caffeinate busybox toybox setarch linux32 linux64 i386 x86_64 uname26 prlimit",
    "choom ssh-agent run-parts start-stop-daemon capsh sg newgrp npx pnpx bunx uvx pipx firejail bwrap cgexec numactl daemonize",
  ].flatMap((line) => line.split(" ")),
);

/** Programs that execute text, a file or their input as commands, or change the meaning of later commands. */
const SHELLS: ReadonlySet<string> = new Set(
  [
    "sh bash dash ash zsh ksh mksh fish csh tcsh rbash eval source . xargs parallel su ssh watch script screen",
    "tmux at batch crontab alias unalias trap hash enable bind complete compgen fc jobs let set unset export",
    "declare typeset readonly local read mapfile readarray getopts",
  ].flatMap((line) => line.split(" ")),
);

/** Interpreters of languages that can start commands. */
const LANGUAGES: ReadonlySet<string> = new Set(
  "awk gawk mawk nawk sed perl python pypy ruby node deno bun php lua tclsh expect ed ex vi vim nvim emacs gdb make".split(
    " ",
  ),
);

const RESERVED: ReadonlySet<string> = new Set("for case select in done fi esac } [[ ]]".split(" "));

/** Returns the name without folders. */
export const baseName = (name: string): string => name.slice(name.lastIndexOf("/") + 1);

/** Returns the name without folders and in lower case, as file systems that ignore case see it. */
export const programOf = (name: string): string => baseName(name).toLowerCase();

/** Removes the version: `python3.12` becomes `python`. */
export function family(program: string): string {
  if (!/\d/.test(program)) return program;
  // A regular expression would try a match at each digit of a long name.
  let end = program.length;
  while (end > 0 && /[\d.-]/.test(program.charAt(end - 1))) end--;
  return program.slice(0, end);
}

/** True if the program's arguments, files or input determine the commands that it runs. */
export const isRunner = (name: string): boolean =>
  isNeverAllowed(name) || LANGUAGES.has(family(programOf(name)));

/** True if allowing the program would allow everything, or if the name is not a command. */
export function isNeverAllowed(name: string): boolean {
  const program = programOf(name);
  if (/^ld(-linux|-musl|\.so)/.test(program)) return true;
  return [WRAPPERS, SHELLS, OPENERS, RESERVED].some((names) => names.has(program));
}
