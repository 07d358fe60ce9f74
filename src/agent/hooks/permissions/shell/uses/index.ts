// A table that lists the options, subcommands and scripts of each program that run no other program. If an entry is missing, a
// person is asked about the command, but no rule is bypassed. Writing files counts as harmless here. Abbreviated options are
// not listed, so they are never accepted.

import { GIT } from "./git.ts";
import { PROJECT_USES } from "./projects.ts";
import { isSimpleAwk, isSimpleSed, sedTargets } from "./scripts.ts";
import { follows, listed, PRINTS, type Use } from "./use.ts";

/** Every option in the command must be one of these. */
const FIND = `-name -iname -path -ipath -wholename -iwholename -regex -iregex -regextype -type -xtype -maxdepth -mindepth -depth -d
  -print -print0 -printf -ls -prune -quit -not -a -and -o -or -true -false -empty -size -mtime -mmin -atime -amin -ctime -cmin -newer
  -anewer -cnewer -newermt -perm -user -group -uid -gid -nouser -nogroup -links -inum -samefile -lname -ilname -follow -L -H -P
  -mount -xdev -daystart -readable -writable -executable -noleaf -warn -nowarn -E -s -x -1 -2 -3 -4 -5 -6 -7 -8 -9
  -0 -10 -14 -15 -20 -30 -60 -90 -100 -120 -180 -365 -O1 -O2 -O3 -quit`;

const RG = `after-context before-context context count count-matches color colors column case-sensitive ignore-case crlf debug encoding
  file files files-with-matches files-without-match fixed-strings follow glob glob-case-insensitive heading hidden iglob
  include-zero invert-match json line-buffered line-number line-regexp max-columns max-columns-preview max-count max-depth max-filesize
  mmap multiline multiline-dotall no-config no-heading no-hidden no-ignore no-ignore-vcs no-line-number no-messages null null-data
  no-filename one-file-system only-matching passthru pcre2 path-separator pretty quiet regexp replace smart-case sort sortr stats text
  threads trim type type-list type-not unrestricted version vimgrep with-filename word-regexp`;

const always = () => true;
const reading = (use: Use): Use => ({ ...use, ...PRINTS });

/** The output's name derives from the archive's name, not from a name inside the archive. */
const COMPRESSOR: Use = {
  flags: "cdfklnqrtvz0123456789eT",
  long: "stdout to-stdout decompress uncompress compress force keep list no-name quiet recursive test verbose fast best threads extreme rm",
};

export const USES: ReadonlyMap<string, Use> = new Map<string, Use>([
  ["git", GIT],
  ["find", reading({ words: FIND })],
  [
    "fd",
    reading({
      flags: "HIsiguFapLl0q1",
      valued: "dtesSEc",
      long: "hidden no-ignore case-sensitive ignore-case glob regex fixed-strings absolute-path follow full-path max-depth min-depth type extension size exclude color max-results",
    }),
  ],
  ["rg", reading({ flags: "acFHhiIlLnNopqsSUuvwxzP0.", valued: "ABCEefgjmMrtTd", long: RG })],
  ["tar", { check: isTar, openEnd: unpacking(doesTarUnpack) }],
  ["unzip", { check: always, openEnd: unpacking((args) => !args.some((arg) => /^-[lptvZ]/.test(arg))) }],
  ...listed("gzip gunzip bzip2 bunzip2 xz unxz zstd zstdcat").map((name): [string, Use] => [
    name,
    COMPRESSOR,
  ]),
  [
    "sort",
    reading({
      flags: "bdfgiMhnRrVcCmsuz",
      valued: "ktST",
      long: "reverse unique numeric-sort key field-separator human-numeric-sort version-sort stable ignore-case zero-terminated check",
    }),
  ],
  ["sed", { check: isSimpleSed, targets: sedTargets }],
  ...["awk", "gawk", "mawk"].map((name): [string, Use] => [name, reading({ check: isSimpleAwk })]),
  [
    "split",
    {
      flags: "dxeu",
      valued: "abClnt",
      long: "bytes lines number suffix-length numeric-suffixes hex-suffixes additional-suffix verbose",
    },
  ],
  [
    "zip",
    { flags: "rqv0123456789jmuyXDeldgokxi", long: "recurse-paths quiet verbose junk-paths exclude include" },
  ],
  [
    "curl",
    {
      check: isCurl,
      targets: (args) =>
        args.some((arg) => /^-\w*[oOcTw]|^--(out|remote|cookie-j|upload|write)/.test(arg)) ? args : [],
    },
  ],
  [
    "wget",
    {
      // Excludes `-r`, `-m`, `-p`, `-x` and `-i`, because they let pages determine the names of folders and files.
      flags: "qvcNSkbdEHKL46",
      valued: "OPoTtwUlARDI",
      long: "quiet verbose no-verbose continue output-document directory-prefix timeout tries no-check-certificate header user-agent post-data method body-data level no-parent no-clobber timestamping spider progress show-progress",
    },
  ],
  [
    "install",
    {
      flags: "bcCdDpTv",
      valued: "gmotS",
      long: "directory mode owner group verbose preserve-timestamps compare target-directory no-target-directory",
    },
  ],
  ["scp", { flags: "rpqvCB346", valued: "Pl", operand: /^[\w./@:~+][\w./@:~+-]*$/ }],
  [
    "rsync",
    {
      flags: "avzrltpgoDnhuPcxHAXSWmiqRkLKyI0",
      valued: "fBT",
      long: "archive verbose compress recursive delete dry-run exclude include progress human-readable stats update checksum links perms times partial relative itemize-changes size-only ignore-existing existing max-size min-size",
      operand: /^[^:]*$/,
    },
  ],
  [
    "less",
    reading({
      flags: "NSRFXiIgGMmnsEeqQ",
      long: "quit-if-one-screen RAW-CONTROL-CHARS chop-long-lines",
      operand: /^[^+]/,
    }),
  ],
  ["more", reading({ flags: "dflpcsu0123456789", operand: /^[^+]/ })],
  ["man", reading({ flags: "fkaw", long: "whatis apropos all where", operand: /^\w[\w.:-]*$/ })],
  ["printf", reading({ check: ([format = ""]) => !format.startsWith("-") })],
  ["test", reading({ check: isTest })],
  ["[", reading({ check: (args) => args.at(-1) === "]" && isTest(args.slice(0, -1)) })],
  ["read", reading({ flags: "r", operand: /^[a-z_][a-z\d_]*$/ })],
  ["wait", reading({ operand: /^\d+$/ })],
  ["command", reading({ check: ([option = ""]) => /^-[vV]$/.test(option) })],
  ["set", reading({ flags: "eux", valued: "o", operand: /^(pipefail|errexit|nounset|\+[eux]+)$/ })],
  [
    "export",
    reading({ check: (args) => args.every((arg) => isHarmlessVariable(arg.split("=", 1)[0] ?? "")) }),
  ],
  ...PROJECT_USES,
]);

/** Excludes `-J`, because the response determines the file name if this option is set. */
const CURL: Use = {
  flags: "sSfLIivgkGNORBa0#64lpn",
  valued: "oXHdFAeubcwmCrTxz",
  long: "silent show-error fail fail-with-body location head include verbose insecure get output remote-name request header data data-raw data-binary data-urlencode form user-agent referer user cookie cookie-jar write-out max-time connect-timeout retry retry-delay compressed json url http1.1 http2 create-dirs continue-at range upload-file proxy no-progress-meter progress-bar",
};

/** With `-O`, or with `#` in the file name, brackets in a URL become part of the name. */
function isCurl(args: readonly string[]): boolean {
  const namesByAddress = args.some((arg) => /^-\w*O|^--remote-name/.test(arg) || arg.includes("#"));
  return follows(CURL, args) && !(namesByAddress && args.some((arg) => /[[{]/.test(arg)));
}

/** If the first word has no dash, it is a bundle of letters that take their values from the following words. */
function isTar(args: readonly string[]): boolean {
  const [first = "", ...rest] = args;
  // tar reads `host:file` through a remote shell.
  if (args.some((arg) => arg.includes(":"))) return false;
  if (first.startsWith("-")) return follows(TAR, args);
  return [...first].every((letter) => `${TAR.flags}${TAR.valued}`.includes(letter)) && follows(TAR, rest);
}
const TAR: Use = {
  flags: "ctxrukvzjJapPhOSmUZw",
  valued: "fCbXLNV",
  long: "create extract list append update file directory exclude verbose gzip bzip2 xz zstd strip-components one-top-level keep-old-files overwrite wildcards totals get",
};

/** Returns a use for programs that write files under names from an archive. */
function unpacking(unpacks: (args: readonly string[]) => boolean) {
  return (args: readonly string[]) =>
    unpacks(args) ? "writes files under names from an archive" : undefined;
}

function doesTarUnpack(args: readonly string[]): boolean {
  return args.some(
    (arg, at) => /^--(?:ext|get)/.test(arg) || (at === 0 ? /^-?\w*x/ : /^-[^-fCbXLNV]*x/).test(arg),
  );
}

function isTest(args: readonly string[]): boolean {
  const own = args[0] === "!" ? args.slice(1) : args;
  const [first = "", operator = ""] = own;
  if (own.length === 3) return /^([!=<>]=?|-(eq|ne|lt|le|gt|ge|nt|ot|ef))$|^==$/.test(operator);
  if (own.length === 2) return /^-[bcdefghknprstuwxzLOGS]$/.test(first);
  return own.length < 2;
}

/** True for variables that no shell or program uses to choose or find programs. */
export const isHarmlessVariable = (name: string): boolean =>
  /^([a-z][a-z\d_]*|NODE_ENV|CI|LANG|LC_[A-Z]+|TZ|COLUMNS|LINES|NO_COLOR|FORCE_COLOR|DEBUG|VERBOSE|RUST_LOG|RUST_BACKTRACE|LOG_LEVEL|PORT|HOST|PYTHONUNBUFFERED|PYTHONDONTWRITEBYTECODE|DEBIAN_FRONTEND|TESTS|SEED)$/.test(
    name,
  ) && !/^(path|cdpath|fpath|module_path|manpath|mailpath|ifs|[a-z]+_proxy)$/.test(name);
