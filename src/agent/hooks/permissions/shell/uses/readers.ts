// Programs that write no content and run no other program, regardless of their arguments.

import { listed } from "./use.ts";

/** Includes programs that create empty files or folders, or remove them, because these contain no instructions. */
export const READERS: ReadonlySet<string> = new Set(
  listed(`
    : true false echo printenv pwd cd sleep exit break continue shift yes arch cal date df du free groups hostname id nproc ps pgrep
    stat tty uname uptime whoami which type getconf locale users cat tac head tail wc nl od hexdump strings cut paste tr rev
    fold fmt expand unexpand column comm join seq look tsort basename dirname dir vdir ls realpath readlink
    file cksum sum md5sum sha1sum sha224sum sha256sum sha384sum sha512sum b2sum base32 base64 diff cmp grep egrep fgrep jq expr
    numfmt factor touch mkdir rmdir mktemp rm unlink zcat bzcat xzcat
  `),
);
