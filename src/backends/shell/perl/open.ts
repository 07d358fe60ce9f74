// A helper in the sandbox that does file operations many times faster than a shell can: a Perl program, for where
// there is a `perl`. It stands behind the same interface as the shell's own file operations.

import type { OpenChannel } from "../channel.ts";
import type { Files } from "../files.ts";
import { type LaneLost, quote } from "../runner.ts";
import { perlFiles } from "./files.ts";
import { PROGRAM } from "./helper/index.ts";
import { Link } from "./link.ts";

/**
 * Every method throws `LaneLost` when the helper, or all that it runs in, goes away in the middle. What may be done
 * again then: `stat`, `list`, `files`, `contents`; a `read` that has yielded nothing; a `write` of bytes that are at
 * hand; and a `remove`, where `not_found` at the second attempt says that the first one did it.
 */
export interface PerlFiles extends Files {
  /** Resolves once the helper is gone or closed, with the reason. Never rejects. */
  readonly lost: Promise<LaneLost>;
  /** Ends the helper; what is under way throws `LaneLost` with this cause. Safe to repeat. */
  close(reason: Error): void;
}

/** What has no place in a program that others start. */
const UNSET = "PERL5OPT PERL5LIB PERL5DB PERLLIB PERLIO PERL_UNICODE";

/**
 * `workdir` is the workspace as the sandbox sees it. Undefined when there is no Perl that works, or no answer in five
 * seconds. Throws what `open` throws, or the signal's reason. The caller closes it.
 */
export async function openPerl(
  open: OpenChannel,
  workdir: string,
  signal: AbortSignal,
): Promise<PerlFiles | undefined> {
  const script = `unset ${UNSET}; exec 2>/dev/null perl -e ${quote(PROGRAM)} ${quote(workdir)}\n`;
  const link = await Link.start(open, script, signal);
  return link && { ...perlFiles(link, workdir), lost: link.lost, close: (reason) => link.close(reason) };
}
