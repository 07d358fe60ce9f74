// Markdown on the page. A block that has not changed is not drawn again.

import type { VNode } from "preact";
import { useRef } from "preact/hooks";
import { Copy, Pre } from "../components.tsx";
import { type Element, growingMarkdown, type Node } from "../markdown.ts";

const drawn = new WeakMap<Element, VNode>();

export function Markdown({ text, isWhole }: { text: string; isWhole: boolean }) {
  const grow = useRef<ReturnType<typeof growingMarkdown>>(undefined);
  grow.current ??= growingMarkdown();
  const blocks = grow.current(text, isWhole);
  return (
    <div class="markdown">
      {blocks.map((block, index) => {
        // biome-ignore lint/suspicious/noArrayIndexKey: blocks are only added at the end.
        const known = drawn.get(block) ?? <Block key={index} element={block} />;
        drawn.set(block, known);
        return known;
      })}
    </div>
  );
}

const Block = ({ element }: { element: Element }) => view(element);

const children = (nodes: readonly Node[]) =>
  nodes.map((node) => (typeof node === "string" ? node : view(node)));

function view(element: Element): VNode {
  const inner = children(element.children);
  const { tag: Tag } = element;
  switch (Tag) {
    case "code-block":
      return <CodeBlock {...element} />;
    case "a":
      return (
        <a href={element.href ?? "#"} target="_blank" rel="noopener noreferrer nofollow">
          {inner}
          {element.host && <small class="host"> {element.host}</small>}
        </a>
      );
    case "table":
      return (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, so the keyboard must reach it.
        <div class="wide" tabIndex={0}>
          <table>{inner}</table>
        </div>
      );
    case "ol":
      return <ol start={element.start}>{inner}</ol>;
    case "th":
    case "td":
      return <Tag class={element.align && `to-${element.align}`}>{inner}</Tag>;
    case "h3":
      return <h3 class={`level-${element.level}`}>{inner}</h3>;
    case "hr":
    case "br":
      return <Tag />;
    default:
      return <Tag>{inner}</Tag>;
  }
}

function CodeBlock({ children: [text], language }: Element) {
  const code = typeof text === "string" ? text : "";
  return (
    <figure class="code-block">
      <figcaption>
        <span>{language ?? "text"}</span>
        <Copy text={() => code} />
      </figcaption>
      <Pre>{code}</Pre>
    </figure>
  );
}
