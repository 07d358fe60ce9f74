// Converts TeX to a tree of MathML, which browsers draw with a system font. Only listed elements and attributes are
// allowed: no styles, links or ids.

import temml from "temml";

export type MathsNode = string | MathsElement;
export interface MathsElement {
  readonly tag: string;
  readonly attributes: Readonly<Record<string, string>>;
  readonly children: readonly MathsNode[];
}

/** A node from Temml: an element, a fragment without a type, or a text. */
interface TemmlNode {
  readonly type?: string;
  readonly text?: string;
  readonly attributes?: Readonly<Record<string, unknown>>;
  readonly classes?: readonly unknown[];
  readonly children?: readonly TemmlNode[];
}

/** The package's types do not describe the module that is imported here. */
const { __renderToMathMLTree: toTree } = temml as unknown as {
  __renderToMathMLTree: (source: string, options: object) => TemmlNode;
};

const words = (list: string): ReadonlySet<string> => new Set(list.split(" "));
const TAGS = words(
  "math mrow mi mn mo mtext mspace mfrac msqrt mroot msub msup msubsup munder mover munderover mmultiscripts mprescripts none " +
    "mtable mtr mtd mpadded mphantom mstyle menclose",
);
const ATTRIBUTES = words(
  "accent columnalign depth display displaystyle fence form height largeop linethickness lspace mathbackground mathcolor mathsize " +
    "mathvariant maxsize minsize movablelimits notation rowspacing rspace scriptlevel separator stretchy symmetric voffset width",
);
const CLASS = /^tml-[a-z-]+$/;

/** The maximum number of nodes. A larger formula is shown as source. */
const MOST_NODES = 5_000;

/** Returns undefined for invalid TeX, and for TeX that must not be drawn. */
export function mathsOf(source: string, isBlock: boolean): MathsElement | undefined {
  try {
    const options = { displayMode: isBlock, throwOnError: true, strict: false, trust: false, maxExpand: 500 };
    let left = MOST_NODES;
    const made = (node: TemmlNode): MathsNode[] => {
      left--;
      if (left < 0) throw new RangeError("The formula is too large.");
      if (node.text !== undefined) return [node.text];
      const children = (node.children ?? []).flatMap(made);
      if (node.type === undefined) return children;
      if (!TAGS.has(node.type)) throw new RangeError(`\`${node.type}\` is no element of a formula.`);
      return [{ tag: node.type, attributes: attributesOf(node), children }];
    };
    const [math] = made(toTree(source, options));
    return typeof math === "object" && math.tag === "math" ? math : undefined;
  } catch {
    return undefined;
  }
}

function attributesOf({ attributes = {}, classes = [] }: TemmlNode): Record<string, string> {
  const allowed = Object.entries(attributes).filter(([name]) => ATTRIBUTES.has(name));
  const names = classes.filter((name) => typeof name === "string" && CLASS.test(name));
  return {
    ...Object.fromEntries(allowed.map(([name, value]) => [name, String(value)])),
    ...(names.length > 0 && { class: names.join(" ") }),
  };
}
