// What every lane's shell learns once: how to find a place in the workspace, and how to say what is in the way.
//
// For any POSIX shell with the tools that busybox and coreutils share. A function that fails sets `r` to what
// went wrong, as `failure` knows it, and what it has printed means nothing. Paths are looked at by builtins
// alone; a process is started only for links and to find out about a failure.
//
//   R  where the workspace really is, without a slash at the end
//   S  where files on their way in or out are kept; T  one of these
//   n  a name in the folder that the shell is in: a path is pinned by going there

import { posix } from "node:path";
import type { FileStat } from "../../core/backend.ts";
import { randomId } from "../../lib/random-id.ts";
import { failure } from "../paths.ts";
import { quote, type Reply, type ScriptRunner, type ShellScript } from "./script.ts";

/** Relative to the workspace; no business of the agent's. */
export const STAGING = ".skein/staging";

export const PRELUDE = `
# Goes to the workspace $1.
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

# Goes to the folder $2 of the workspace $1, which may turn out to be outside.
fs_enter() {
  fs_root "$1" || return 1
  cd -P -- "./$2" || { fs_walk "$2" && fs_explain; return 1; }
}

# Goes along the path $1 as far as there are folders; rest: what is left of it.
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

# Why there is no way on after fs_walk.
fs_explain() {
  n=\${rest%%/*}
  [ -n "$n" ] || { r=ENAMETOOLONG; return; }
  fs_follow && fs_inside || return
  r=ENOENT
  [ ! -e "./$n" ] || r=ENOTDIR
}

# Follows ./$n to what is no link. It must not lead to a folder: that is what cd is for.
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

# Finds what is there under the name $3 in the folder $2 of the workspace $1. n is "." for a folder.
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

# As fs_find, for a folder that can be looked into.
fs_folder() {
  fs_find "$@" || return 1
  [ "$n" = . ] || { r=NOFOLDER; return 1; }
  [ -r . ] || { r=EACCES; return 1; }
}

# As fs_find, for a regular file that can be read.
fs_file() {
  fs_find "$@" || return 1
  if [ "$n" = . ]; then r=EISDIR
  elif [ ! -f "./$n" ]; then r=NOFILE
  elif [ ! -r "./$n" ]; then r=EACCES
  else return 0
  fi
  return 1
}

# Finds the place for a file $3 in the folder $2 of the workspace $1, which is made where it is missing.
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

# Makes the folder $1 below what there is of it.
fs_make() {
  fs_walk "$1" || return 1
  if [ -e "./\${rest%%/*}" ] || [ -L "./\${rest%%/*}" ]; then
    fs_explain
    return 1
  fi
  fs_try mkdir -p "./$rest" && cd -P -- "./$rest"
}

# Makes what files on their way need. What a user has put in its place is the user's.
fs_stage() {
  [ ! -L "$R/.skein" ] && [ ! -L "$S" ] || { r=STAGING; return 1; }
  [ -d "$S" ] && [ -w "$S" ] && [ -x "$S" ] && return
  [ -d "$R/.skein" ] || [ ! -e "$R/.skein" ] || { r=STAGING; return 1; }
  fs_try mkdir -p "$S" && fs_try chmod 700 "$S"
}

# Tells of the entries "$@" here: first where this is in the workspace, then a record for each that there is.
fs_tell() {
  printf '%s\\0' "\${PWD#"$R"}"
  stat -c "$N:%f %s %Y %n/" -- "$@"
}

# Puts $T in the place of ./$n.
fs_put() {
  [ ! -x "./$n" ] || chmod +x "$T"
  mv -f "$T" "./$n" || fs_try mv -f "$T" "./$n"
}

fs_drop() {
  [ -z "$T" ] || rm -f "$T"
}

# Adds the $1 bytes that can be read to $T. Not every head tells a failure by its status.
fs_receive() {
  e=$(head -c "$1" 2>&1 >>"$T") && [ -z "$e" ] || fs_full "$1"
}

# Why $1 bytes could not be written to $T. Not every head can tell.
fs_full() {
  e=$(head -c "$1" /dev/zero | LC_ALL=C cat 2>&1 >>"$T")
  fs_blame $?
}

fs_try() {
  e=$(LC_ALL=C "$@" 2>&1) || fs_blame $?
}

# A tool has ended with status $1, saying $e.
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

# Takes away what has the name $3 in the folder $2 of the workspace $1, a folder by moving it to $S/$4: then r is "0 moved".
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

# Erases what lies under the name $1 in $S, whatever it is and however deep: not every rm reaches the ground.
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

# Erases what was put into $S before the second $1.
fs_clear() {
  [ -d "$S" ] && [ ! -L "$R/.skein" ] && [ ! -L "$S" ] && cd -P -- "$S" || return
  for f in * .[!.]* ..?*; do
    case \${f%%-*} in
      '' | *[!0-9]*) ;;
      *) [ "\${f%%-*}" -lt "$1" ] || continue ;;
    esac
    fs_erase "$f"
    cd -P -- "$S"
  done
}
`;

// A path that something is done with in a shell: how its fragments name it, and what their failures are called.
const CLEANUP_MS = 2000;
/** Of output, where a fragment does not say that it needs more: whoever has taken over a shell can send much. */
const MAX_BYTES = 64 * 1024;

export interface Target {
  readonly runner: ScriptRunner;
  readonly workdir: string;
  /** As the agent wrote it, for messages. */
  readonly path: string;
  /** To the workspace, without `.` and `..`; empty for the workspace itself. */
  readonly relative: string;
}

/** Workspace, folder and name: the words that the functions of the prelude take. */
export function wordsOf({ workdir, relative }: Target): string {
  return [workdir, posix.dirname(relative), posix.basename(relative) || "."].map(quote).join(" ");
}

/** Runs a fragment that may safely run twice. Throws what it says went wrong. */
export async function perform(target: Target, fragment: ShellScript, signal: AbortSignal): Promise<Reply> {
  signal.throwIfAborted();
  return succeeded(await target.runner.run({ maxBytes: MAX_BYTES, ...fragment }, signal), target.path);
}

export function succeeded(reply: Reply, path: string): Reply {
  const [status = ""] = reply.fields;
  if (status === "0") return reply;
  // It comes from a stranger, and goes into a message.
  throw failure(/^[A-Z_]{1,20}$/.test(status) ? status : "EIO", path);
}

/** A name in staging that nobody else has, and that tells when it was made. */
export const stagingName = (unique = randomId()) => `${Math.floor(Date.now() / 1000)}-${unique}`;

/** Removes a file from staging, if it can be done soon. Otherwise it is left for `clearStaging`. */
export async function discard({ runner, workdir }: Target, name: string): Promise<void> {
  const script = `fs_root ${quote(workdir)} && rm -f "$S/${name}"`;
  await runner.run({ script }, AbortSignal.timeout(CLEANUP_MS)).catch(() => {});
}

// What `fs_tell` of the prelude prints, read.
/** Mode in hexadecimal, bytes, seconds, name: a slash shows that it is whole. */
const RECORD = /^([0-9a-f]+) (\d+) (-?\d+) (?:\.\/)?(.+)\/\n$/s;
/** By the fourth hexadecimal digit of the mode from the right. */
const TYPES: Readonly<Record<string, FileStat["type"]>> = { 8: "file", 4: "directory", a: "symlink" };
/** The farthest that a `Date` can tell; a disk may know times beyond. */
const MAX_SECONDS = 8_640_000_000_000;
/** More are never asked for. Who has taken over a shell can send many more, to keep us busy with them. */
const MAX_RECORDS = 10_000;

/** Paths begin with `workdir`; names that are no UTF-8 come with replacement characters. What is cut off is left out. */
export function entriesIn({ output, mark }: Reply, workdir: string): FileStat[] {
  const end = output.indexOf(0);
  const folder = `${workdir}${output.toString("utf8", 0, end)}`;
  const [, ...records] = output.toString("utf8", end).split(`${mark}:`, MAX_RECORDS + 1);
  return records.flatMap((record) => {
    const [, mode = "", size, seconds, name = ""] = RECORD.exec(record) ?? [];
    if (name === "") return [];
    const time = Math.min(Math.max(Number(seconds), -MAX_SECONDS), MAX_SECONDS);
    return {
      path: name === "." ? folder : `${folder}/${name}`,
      type: TYPES[mode.at(-4) ?? ""] ?? "other",
      size: Number(size),
      modified_at: new Date(time * 1000).toISOString(),
    };
  });
}
