// Scripts of sed and awk, which can run commands and write files.

const LINES = String.raw`(?:\d+(?:~\d+)?|\$|/(?:[^/\\\n[]|\\[^\n])+/I?)`;
const SED_ADDRESS = new RegExp(`(?:${LINES}(?:,${LINES})?)?[ \\t]*!?[ \\t]*`, "y");
const SED_REPLACEMENTS = [..."/|#,@:"].map((mark) => {
  const part = String.raw`(?:[^${mark}\\\n[]|\\[^\n]|\[[^${mark}\]\n\\]+\])*`;
  return String.raw`s[${mark}]${part}[${mark}]${part}[${mark}][gpiI\d]*`;
});
/** Printing, deleting and replacing; a text is taken up to the end of its line. */
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

/** Printing, deleting and replacing lines are known not to. */
export function isSimpleSed(args: readonly string[]): boolean {
  const scripts: string[] = [];
  const others: string[] = [];
  for (let at = 0; at < args.length; at++) {
    const arg = args[at] ?? "";
    if (/^-[nErsuz]*e$/.test(arg)) scripts.push(args[++at] ?? "e");
    else if (/^--expression=/.test(arg)) scripts.push(arg.slice(13));
    else if (arg.startsWith("-") && arg !== "-") {
      if (
        !/^(-[nErsuz]*(i(\.\w+)?)?|--(quiet|silent|regexp-extended|in-place(=\.\w+)?|separate|null-data|posix))$/.test(
          arg,
        )
      )
        return false;
    } else others.push(arg);
  }
  if (scripts.length === 0) scripts.push(others.shift() ?? "e");
  return scripts.every(isSedScript);
}

export function isSimpleAwk(args: readonly string[]): boolean {
  return args.every((arg) =>
    arg.startsWith("-")
      ? /^-(F|v)/.test(arg) || arg === "--" || arg === "-"
      : !/system|getline|[|>@]/.test(arg),
  );
}
