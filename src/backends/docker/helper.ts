// The file helper of a container, where its image has what it takes: opened beside everything else, so that nobody
// waits for it, and opened again when it is lost. While there is none, files are the shells' work.

import type { OpenChannel } from "../shell/channel.ts";
import { openPerl, type PerlFiles } from "../shell/perl/open.ts";

/** Something that kills it again and again is left to the shells. */
const MAX_OPENED = 4;

export interface Helper {
  readonly files: PerlFiles | undefined;
  close(reason: Error): void;
}

export function keepHelper(open: OpenChannel, workdir: string): Helper {
  const closing = new AbortController();
  let files: PerlFiles | undefined;

  const keep = async () => {
    for (let opened = 0; opened < MAX_OPENED; opened++) {
      const helper = await openPerl(open, workdir, closing.signal);
      if (!helper) return;
      files = helper;
      await helper.lost;
      files = undefined;
    }
  };
  // Without it the shells do all there is to do, and find out what is wrong.
  keep().catch(() => {});

  return {
    get files() {
      return files;
    },
    close(reason) {
      closing.abort(reason);
      files?.close(reason);
    },
  };
}
