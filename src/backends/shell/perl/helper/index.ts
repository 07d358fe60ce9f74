// The helper: a Perl program that does file operations in a sandbox, many at once, over its standard input and
// output. It needs nothing but what Debian calls essential (`perl-base`), sleeps while there is nothing to do, and
// ends with its input. Its argument is the workspace; all paths that it is given are relative to that, without
// `.` and `..`, empty for the workspace itself.
//
// A frame, both ways: the length of the rest (u32), the id of an operation (u32), one letter, and fields, each
// behind its length (u32). A request:
//
//   s path                      facts of what it leads to: kind, bytes, seconds since 1970, path with links resolved
//   r path offset length        more (1 or 0), bytes; an empty length = to the end
//   m                           the same again, of the file that was opened then
//   w path last bytes           begins a file; with `last` (1 or 0) it is put in its place
//   a last bytes                goes on with it
//   l path                      `d`: kind, bytes, seconds, name of each entry; then the folder's path
//   f path skipped…             `d`: path of each file below; then `all` or `more`
//   c most path…                for the first so many of the paths: a word (file, none, large) and the bytes
//   d path                      removes it
//   x                           gives the operation up; has no answer itself
//
// Each other request is answered once, by `k` (done) or `e` (the name of an errno, or a word of ours); before that
// there may be `d` (a part of the answer) and `p` (still at it). Requests of one id come one after another.

import { FILES } from "./files.ts";
import { FOLDERS } from "./folders.ts";
import { LOOP } from "./loop.ts";
import { PATHS } from "./paths.ts";

export const PROGRAM = [PATHS, FILES, FOLDERS, LOOP].join("\n");
