// The shell functions for file operations, which each session defines once, and the format of their scripts and
// results.
//
// They run in any POSIX shell with the tools that busybox and coreutils share. A function that fails sets `r` to a code
// that `failure` can convert. Its output is then meaningless. Paths are examined with shell builtins. A process is
// started only for links and to explain a failure.

import { posix } from "node:path";
import type { FileStat } from "../../agent/core/backend.ts";
import { AppError } from "../../agent/core/errors.ts";
import { isInside } from "../../lib/paths.ts";
import { randomId } from "../../lib/random-id.ts";
import { failure, quoted, toRelative } from "../paths.ts";
import { quote, type ScriptReply, type ScriptRunner, type ShellScript } from "./script.ts";

/** The staging folder, relative to the workspace. It is hidden from the agent. */
export const STAGING = ".skein/staging";
/**
 * The home directory of commands. It is hidden too, because programs execute settings that they find there.
 */
export const HOME = ".skein/home";
/** Folders that file tools skip. */
export const RESERVED: readonly string[] = [STAGING, HOME];
export const STAGING_ROOT = STAGING.slice(0, STAGING.indexOf("/"));

export const PRELUDE = `
# Enters the workspace $1.
fs_root() {
  r=0
  T=
  cd -P -- "$1" || { r=NO_WORKSPACE; return 1; }
  R=\${PWD%/}
  S=$R/${STAGING}
}

fs_inside() {
  case $PWD/ in "$R"/*) return 0 ;; esac
  r=OUTSIDE
  return 1
}

# Enters the folder $2 of the workspace $1, which may be outside through a link.
fs_enter() {
  fs_root "$1" || return 1
  cd -P -- "./$2" || { fs_walk "$2" && fs_explain; return 1; }
}

# Follows the path $1 as far as folders exist; rest: the remaining path.
fs_walk() {
  cd -P -- "$R/"
  rest=$1
  head=$1
  while [ -n "$head" ]; do
    if [ -d "./$head" ]; then
      cd -P -- "./$head" || { r=EACCES; return 1; }
      rest=\${rest#"$head"}
      rest=\${rest#/}
      head=$rest
    else
      case $head in */*) head=\${head%/*} ;; *) head= ;; esac
    fi
  done
  fs_inside
}

# Explains why the path ends after fs_walk.
fs_explain() {
  n=\${rest%%/*}
  [ -n "$n" ] || { r=ENAMETOOLONG; return; }
  fs_follow && fs_inside || return
  r=ENOENT
  [ ! -e "./$n" ] || r=ENOTDIR
}

# Follows the link ./$n, which must not lead to a folder: cd follows those.
fs_follow() {
  i=0
  while [ -L "./$n" ]; do
    i=$((i + 1))
    [ $i -le 40 ] || { r=ELOOP; return 1; }
    t=$(readlink "./$n"; echo .)
    t=\${t%??}
    n=\${t##*/}
    case $n in '' | . | ..) r=ENOENT; return 1 ;; esac
    case $t in
      /*) cd -P -- "\${t%/*}/" ;;
      */*) cd -P -- "./\${t%/*}" ;;
    esac || { r=ENOENT; return 1; }
  done
}

# Finds the entry $3 in the folder $2 of the workspace $1. n is "." for a folder.
fs_find() {
  fs_enter "$1" "$2" || return 1
  n=$3
  if [ -d "./$n" ]; then
    cd -P -- "./$n" || { r=EACCES; return 1; }
    n=.
  else
    fs_follow || return 1
  fi
  fs_inside || return 1
  [ -e "./$n" ] || { r=ENOENT; return 1; }
}

# Like fs_find, but requires a readable folder.
fs_folder() {
  fs_find "$@" || return 1
  [ "$n" = . ] || { r=NOFOLDER; return 1; }
  [ -r . ] || { r=EACCES; return 1; }
}

# Like fs_find, but requires a readable regular file.
fs_file() {
  fs_find "$@" || return 1
  if [ "$n" = . ]; then r=EISDIR
  elif [ ! -f "./$n" ]; then r=NOFILE
  elif [ ! -r "./$n" ]; then r=EACCES
  else return 0
  fi
  return 1
}

# Finds the place for a file $3 in the folder $2 of the workspace $1. Creates missing folders.
fs_target() {
  fs_root "$1" || return 1
  cd -P -- "./$2" || fs_make "$2" || return 1
  n=$3
  if [ -d "./$n" ]; then
    cd -P -- "./$n" && fs_inside && r=EISDIR
    [ "$r" != 0 ] || r=EACCES
    return 1
  fi
  if [ -L "./$n" ]; then
    fs_follow && fs_inside && [ ! -e "./$n" ] && r=DANGLING
    [ "$r" != ENOENT ] || r=DANGLING
    [ "$r" = 0 ] || return 1
  fi
  fs_inside || return 1
  [ ! -e "./$n" ] || [ -f "./$n" ] || { r=NOFILE; return 1; }
}

# Creates the folder $1 and its missing parents.
fs_make() {
  fs_walk "$1" || return 1
  if [ -e "./\${rest%%/*}" ] || [ -L "./\${rest%%/*}" ]; then
    fs_explain
    return 1
  fi
  fs_try mkdir -p "./$rest" && cd -P -- "./$rest"
}

# Creates staging, but never replaces an entry of the user.
fs_stage() {
  [ ! -L "$R/.skein" ] && [ ! -L "$S" ] || { r=STAGING; return 1; }
  [ -d "$S" ] && [ -w "$S" ] && [ -x "$S" ] && return
  [ -d "$R/.skein" ] || [ ! -e "$R/.skein" ] || { r=STAGING; return 1; }
  fs_try mkdir -p "$S" && fs_try chmod 700 "$S"
}

# Prints this folder's path in the workspace, then a record for each existing entry of "$@".
fs_tell() {
  printf '%s\\0' "\${PWD#"$R"}"
  stat -c "$N:%f %s %Y %n/" -- "$@"
}

# Moves $T to ./$n.
fs_put() {
  [ ! -x "./$n" ] || chmod +x "$T"
  mv -f "$T" "./$n" || fs_try mv -f "$T" "./$n"
}

fs_drop() {
  [ -z "$T" ] || rm -f "$T"
}

# Appends $1 bytes of input to $T. Some versions of head do not report a failure by their status.
fs_receive() {
  e=$(head -c "$1" 2>&1 >>"$T") && [ -z "$e" ] || fs_full "$1"
}

# Explains why $1 bytes could not be written to $T. Some versions of head do not report it.
fs_full() {
  e=$(head -c "$1" /dev/zero | LC_ALL=C cat 2>&1 >>"$T")
  fs_blame $?
}

fs_try() {
  e=$(LC_ALL=C "$@" 2>&1) || fs_blame $?
}

# Handles a tool that exited with status $1 and printed $e.
fs_blame() {
  case $1:$e in
    153:* | *': File too large') r=EFBIG ;;
    *': No space left on device') r=ENOSPC ;;
    *'uota exceeded') r=EDQUOT ;;
    *': Read-only file system') r=EROFS ;;
    *': Permission denied') r=EACCES ;;
    *': Operation not permitted') r=EPERM ;;
    *'esource busy') r=EBUSY ;;
    *) r=EIO ;;
  esac
  return 1
}

# Removes the entry $3 in the folder $2 of the workspace $1. Moves a folder to $S/$4 and sets r to "0 moved".
fs_remove() {
  fs_enter "$1" "$2" && fs_inside || return 1
  n=$3
  if [ ! -d "./$n" ] || [ -L "./$n" ]; then
    [ -e "./$n" ] || [ -L "./$n" ] || { r=ENOENT; return 1; }
    rm -f "./$n" || fs_try rm -f "./$n"
  elif [ "./$n" -ef "$R/.skein" ] || ! fs_stage; then
    r=0
    rm -rf "./$n" || { chmod -R u+rwX "./$n"; fs_try rm -rf "./$n"; }
  else
    [ -w "./$n" ] || chmod u+rwx "./$n"
    mv "./$n" "$S/$4" || fs_try mv "./$n" "$S/$4" || return 1
    r="0 moved"
  fi
}

# Erases the entry $1 in $S at any depth. Some versions of rm cannot do that.
fs_erase() {
  rm -rf "$S/$1"
  [ -d "$S/$1" ] || return 0
  mkdir "$S/$1.d" && chmod u+rwx "$S/$1" && mv "$S/$1" "$S/$1.d/0" && cd -P -- "$S/$1.d" || return 1
  i=0
  while [ $((i += 1)) -le 100 ]; do
    chmod -R u+rwX .
    rm -rf ./*
    rmdir "$S/$1.d" && return 0
    find . -mindepth 12 -maxdepth 12 -type d -exec sh -c '
      for d; do i=$((i + 1)); mv "$d" "./$$.$i"; done' sh {} +
  done
  return 1
}

# Succeeds if the entry $1 of $S is older than the time $2, in seconds. Entries of others have no time in their names.
fs_old() {
  case \${1%%-*} in
    '' | *[!0-9]*) ;;
    *) [ "\${1%%-*}" -lt "$2" ] ;;
  esac
}

# Erases entries of $S that are older than the time $1, in seconds: first many at a time, then what rm could not erase.
fs_clear() {
  [ -d "$S" ] && [ ! -L "$R/.skein" ] && [ ! -L "$S" ] && cd -P -- "$S" || return
  b=$1
  set --
  for f in * .[!.]* ..?*; do
    fs_old "$f" "$b" || continue
    set -- "$@" "./$f"
    [ $# -lt 100 ] || { rm -rf "$@"; set --; }
  done
  rm -rf "$@"
  for f in * .[!.]* ..?*; do
    ! fs_old "$f" "$b" || fs_erase "$f"
    cd -P -- "$S"
  done
}
`;

const CLEANUP_MS = 2000;
/** The default limit of output in bytes. A limit is needed because a hijacked shell can send a lot. */
const MAX_BYTES = 64 * 1024;

/** The path that a script works on. */
export interface ScriptTarget {
  readonly runner: ScriptRunner;
  readonly workdir: string;
  /** The path as the agent wrote it, for messages. */
  readonly path: string;
  /** The path relative to the workspace, without `.` and `..`. Empty for the workspace itself. */
  readonly relative: string;
}

/** Returns `path` relative to the workspace. Throws for a path that leads outside or into a reserved folder. */
export function relativePath(path: string, workdir: string): string {
  const relative = toRelative(path, [workdir]);
  if (!RESERVED.some((folder) => isInside(folder, relative))) return relative;
  const purpose = isInside(HOME, relative)
    ? "the home directory of commands"
    : "files that are being written";
  throw new AppError("backend_refused", `${quoted(path)} is reserved for ${purpose}. Use another path.`);
}

/** Returns the workspace, folder and name as arguments for the prelude's functions. */
export function wordsOf({ workdir, relative }: ScriptTarget): string {
  return [workdir, posix.dirname(relative), posix.basename(relative) || "."].map(quote).join(" ");
}

/** Runs a script that is safe to run twice. Throws the failure that the script reports. */
export async function perform(
  target: ScriptTarget,
  script: ShellScript,
  signal: AbortSignal,
): Promise<ScriptReply> {
  signal.throwIfAborted();
  return succeeded(await target.runner.run({ maxBytes: MAX_BYTES, ...script }, signal), target.path);
}

export function succeeded(reply: ScriptReply, path: string): ScriptReply {
  const [status = ""] = reply.fields;
  if (status === "0") return reply;
  // The sandbox is untrusted, and the status becomes part of a message.
  throw failure(/^[A-Z_]{1,20}$/.test(status) ? status : "EIO", path);
}

/** Returns a unique name in staging. The name begins with the current time. */
export const stagingName = (unique = randomId()) => `${Math.floor(Date.now() / 1000)}-${unique}`;

/** Removes a file from staging within `CLEANUP_MS`. If that fails, `clearStaging` removes it later. */
export async function discard({ runner, workdir }: ScriptTarget, name: string): Promise<void> {
  const script = `fs_root ${quote(workdir)} && rm -f "$S/${name}"`;
  await runner.run({ script }, AbortSignal.timeout(CLEANUP_MS)).catch(() => {});
}

/**
 * A record that `fs_tell` prints: the mode in hexadecimal, the bytes, the seconds, the name, and a slash that
 * proves that the record is complete.
 */
const RECORD = /^([0-9a-f]+) (\d+) (-?\d+) (?:\.\/)?(.+)\/\n$/s;
/** The types by the fourth hexadecimal digit of the mode, counted from the right. */
const TYPES: Readonly<Record<string, FileStat["type"]>> = { 8: "file", 4: "directory", a: "symlink" };
/** The limit of a `Date` in seconds. A disk may contain later times. */
const MAX_SECONDS = 8_640_000_000_000;
/**
 * The maximum number of records. No operation needs more, but a hijacked shell could send more to keep the
 * server busy.
 */
const MAX_RECORDS = 10_000;

/**
 * Parses the entries in a reply. Their paths begin with `workdir`. Names that are not valid UTF-8 contain
 * replacement characters. Drops incomplete records.
 */
export function entriesIn({ output, mark }: ScriptReply, workdir: string): FileStat[] {
  const end = output.indexOf(0);
  const folder = `${workdir}${output.toString("utf8", 0, end)}`;
  const [, ...records] = output.toString("utf8", end).split(`${mark}:`, MAX_RECORDS + 1);
  return records.flatMap((record) => {
    const [, mode = "", size, seconds, name = ""] = RECORD.exec(record) ?? [];
    if (name === "") return [];
    return {
      path: name === "." ? folder : `${folder}/${name}`,
      type: TYPES[mode.at(-4) ?? ""] ?? "other",
      size: Number(size),
      modified_at: isoTime(Number(seconds)),
    };
  });
}

export function isoTime(seconds: number): string {
  return new Date(Math.min(Math.max(seconds, -MAX_SECONDS), MAX_SECONDS) * 1000).toISOString();
}
