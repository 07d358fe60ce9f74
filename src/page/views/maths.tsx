// A formula. Shows its source until the typesetter is loaded, or if the source is invalid.

import { h, type VNode } from "preact";
import { useMemo } from "preact/hooks";
import { useModule } from "../lazy.tsx";
import type { MathsNode } from "../maths.ts";

const load = () => import("../maths.ts");

export function Maths(props: { source: string; isBlock: boolean; written: string }) {
  const { source, isBlock, written } = props;
  const maths = useModule(load);
  const drawn = useMemo(() => maths?.mathsOf(source, isBlock), [maths, source, isBlock]);
  const shown = drawn ? view(drawn) : written;
  if (!isBlock) return <span class="maths">{shown}</span>;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, so keyboard users must be able to focus it.
    <span class="maths block" tabIndex={0}>
      {shown}
    </span>
  );
}

const view = (node: MathsNode): VNode | string =>
  typeof node === "string" ? node : h(node.tag, node.attributes, ...node.children.map(view));
