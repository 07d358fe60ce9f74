// Scripts of sed and awk, which can run commands and write files.

const LINES = String.raw`(?:\d+(?:~\d+)?|\$|/(?:[^/\\\n[]|\\[^\n])+/I?)`;
const SED_ADDRESS = new RegExp(`(?:${LINES}(?:,${LINES})?)?[ \\t]*!?[ \\t]*`, "y");
const SED_REPLACEMENTS = [..."/|#,@:"].map((mark) => {
  const part = String.raw`(?:[^${mark}\\\n[]|\\[^\n]|\[[^${mark}\]\n\\]+\])*`;
  return String.raw`s[${mark}]${part}[${mark}]${part}[${mark}][gpiI\d]*`;
});
/** Commands that print, delete and replace. A text argument extends to the end of its line. */
const SED_COMMAND = new RegExp(
  String.raw`(?:[pdqDPhHgGxlnN=]|${SED_REPLACEMENTS.join("|")})[ \t]*(?=[;\n]|$)|[aic](?:\\\n|\\?[ \t])[^\n\\]*(?=\n|$)`,
  "y",
);
const SED_GAP = /[;\s]*/y;

function isSedScript(script: string): boolean {
  let at = 0;
  const take = (token: RegExp) => {
    token.lastIndex = at;
    if (!token.test(script)) return false;
    at = token.lastIndex;
    return true;
  };
  for (;;) {
    take(SED_GAP);
    if (at === script.length) return true;
    take(SED_ADDRESS);
    if (!take(SED_COMMAND)) return false;
  }
}

interface SedArguments {
  readonly scripts: readonly string[];
  readonly options: readonly string[];
  readonly files: readonly string[];
}

function sedArguments(args: readonly string[]): SedArguments {
  const [scripts, options, files]: [string[], string[], string[]] = [[], [], []];
  for (let at = 0; at < args.length; at++) {
    const arg = args[at] ?? "";
    if (/^-[nErsuz]*e$/.test(arg)) scripts.push(args[++at] ?? "e");
    else if (/^--expression=/.test(arg)) scripts.push(arg.slice(13));
    else if (arg.startsWith("-") && arg !== "-") options.push(arg);
    else files.push(arg);
  }
  if (scripts.length === 0) scripts.push(files.shift() ?? "e");
  return { scripts, options, files };
}

/** The suffix of `-i` names the backup copy, so only these suffixes are accepted. */
const SED_OPTION =
  /^-(?:[nErsuz]*(?:i(?:\.(?:bak|old|orig|tmp))?)?|-(?:quiet|silent|regexp-extended|in-place(?:=\.(?:bak|old|orig|tmp))?|separate|null-data|posix))$/;

/** True if the script only prints, deletes and replaces lines. */
export function isSimpleSed(args: readonly string[]): boolean {
  const { scripts, options } = sedArguments(args);
  return options.every((option) => SED_OPTION.test(option)) && scripts.every(isSedScript);
}

/** Returns the files that sed writes. sed only prints unless its options make it edit files in place. */
export function sedTargets(args: readonly string[]): readonly string[] {
  const { options, files } = sedArguments(args);
  const editsInPlace = options.some((option) => /^-[nErsuz]*i|^--in-place/.test(option));
  return editsInPlace ? files : [];
}

export function isSimpleAwk(args: readonly string[]): boolean {
  return args.every((arg) =>
    arg.startsWith("-")
      ? /^-(F|v)/.test(arg) || arg === "--" || arg === "-"
      : !/system|getline|[|>@]/.test(arg),
  );
}
