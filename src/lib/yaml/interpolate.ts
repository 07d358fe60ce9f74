// Fills in variables in a text: `${NAME}`, `${NAME:-default}` if it can be unset or empty, and `$${` for a literal
// `${`.

const VARIABLE = /\$\$\{|\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^{}]*))?\}|\$\{/g;

const MALFORMED = `\`\${\` does not begin a variable here; write \`\${NAME}\`, \`\${NAME:-default}\`, or \`$\${\` for itself`;

export type Variables = Readonly<Record<string, string | undefined>>;

export interface InterpolatedText {
  readonly text: string;
  /** One sentence for each variable that could not be filled in. */
  readonly faults: readonly string[];
  /** The variables whose values the text now contains. */
  readonly used: ReadonlyMap<string, string>;
}

export function interpolate(source: string, variables: Variables): InterpolatedText {
  const faults: string[] = [];
  const used = new Map<string, string>();
  const text = source.replace(VARIABLE, (match: string, name?: string, fallback?: string) => {
    if (match === "$${") return "${";
    if (name === undefined) {
      faults.push(MALFORMED);
      return match;
    }
    const value = Object.hasOwn(variables, name) ? variables[name] : undefined;
    if (value) used.set(name, value);
    else if (fallback === undefined)
      faults.push(`environment variable \`${name}\` is not set; set it, or write \`\${${name}:-default}\``);
    return value || fallback || "";
  });
  return { text, faults, used };
}
