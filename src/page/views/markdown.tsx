// Renders Markdown. An unchanged block is not drawn again.

import { createContext, type VNode } from "preact";
import { useContext, useId, useRef } from "preact/hooks";
import { type Element, growingMarkdown, type Node, textOf } from "../markdown.ts";
import { t } from "../texts.ts";
import { CodeBlock } from "./code-block.tsx";
import { Maths } from "./maths.tsx";
import { FileLink, InlineCode, WorkspacePicture } from "./workspace.tsx";

const drawn = new WeakMap<Element, VNode>();

/**
 * The prefix of the ids in a text. Labels in the text never become ids, because they could collide with the ids of
 * other elements.
 */
const IdsOf = createContext("");

export function Markdown({ text, isWhole }: { text: string; isWhole: boolean }) {
  const grow = useRef<ReturnType<typeof growingMarkdown>>(undefined);
  grow.current ??= growingMarkdown();
  const id = useId();
  const blocks = grow.current(text, isWhole);
  return (
    <IdsOf.Provider value={id}>
      <div class="markdown">
        {blocks.map((block, index) => {
          // biome-ignore lint/suspicious/noArrayIndexKey: blocks are only added at the end.
          const known = drawn.get(block) ?? <Block key={index} element={block} />;
          drawn.set(block, known);
          return known;
        })}
      </div>
    </IdsOf.Provider>
  );
}

/** Each block gets its own text direction. */
const Block = ({ element }: { element: Element }) => view(element, "auto");

const children = (nodes: readonly Node[]) =>
  nodes.map((node) => (typeof node === "string" ? node : view(node)));

function view(element: Element, dir?: "auto"): VNode {
  const inner = children(element.children);
  const { tag: Tag } = element;
  switch (Tag) {
    case "code-block":
      return (
        <CodeBlock
          code={textOf(element.children)}
          language={element.language}
          isClosed={element.isClosed === true}
          isTooLong={element.isTooLong === true}
        />
      );
    case "a":
    case "picture":
      return <Link {...element} />;
    case "table":
      return (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, so keyboard users must be able to focus it.
        // biome-ignore lint/a11y/useSemanticElements: a landmark would need a unique name.
        <div class="wide" role="group" tabIndex={0} aria-label={t().markdown.table}>
          <table dir={dir}>{inner}</table>
        </div>
      );
    case "ol":
      return (
        <ol start={element.start} dir={dir}>
          {inner}
        </ol>
      );
    case "li":
      return <li class={isTask(element) ? "task" : undefined}>{inner}</li>;
    case "checkbox":
      return <Checkbox isChecked={element.isChecked === true} />;
    case "th":
    case "td":
      return <Tag class={classOf(element)}>{inner}</Tag>;
    case "h3":
      return (
        <h3 class={`level-${element.level}`} dir={dir}>
          {inner}
        </h3>
      );
    case "hr":
    case "br":
      return <Tag />;
    case "code":
      return <InlineCode code={textOf(element.children)} />;
    case "maths":
      return (
        <Maths
          source={element.source ?? ""}
          isBlock={element.isBlock === true}
          written={textOf(element.children)}
        />
      );
    case "html":
      return element.isBlock ? <p dir={dir}>{inner}</p> : <span>{inner}</span>;
    case "footnote-mark":
      return <FootnoteMark number={element.number ?? 0} />;
    case "footnotes":
      return (
        // biome-ignore lint/a11y/useSemanticElements: a landmark would need a unique name.
        <div class="footnotes" role="group" aria-label={t().markdown.footnotes}>
          <ol>{inner}</ol>
        </div>
      );
    case "footnote":
      return <Footnote number={element.number ?? 0}>{inner}</Footnote>;
    default:
      return <Tag dir={dir}>{inner}</Tag>;
  }
}

const classOf = ({ align, isNumber }: Element) =>
  [align && `to-${align}`, isNumber && "unbroken"].filter(Boolean).join(" ") || undefined;

/** In a list with empty lines between its items, the checkbox is in the first paragraph. */
function isTask({ children: [first] }: Element): boolean {
  if (first === undefined || typeof first === "string") return false;
  return first.tag === "checkbox" || (first.tag === "p" && isTask(first));
}

const Checkbox = ({ isChecked }: { isChecked: boolean }) => (
  <input type="checkbox" disabled checked={isChecked} aria-label={t().markdown.task(isChecked)} />
);

function Link({ tag, children: nodes, href, host, path = "" }: Element) {
  const words = children(nodes);
  if (href === undefined)
    return tag === "picture" ? (
      <WorkspacePicture path={path} name={textOf(nodes)} />
    ) : (
      <FileLink path={path}>{words}</FileLink>
    );
  // The page never loads a picture from elsewhere, because its host would learn who reads what.
  const isPicture = tag === "picture";
  const aside = isPicture ? textOf(nodes) : host;
  return (
    <a href={href} target="_blank" rel="noopener noreferrer nofollow">
      {isPicture ? t().markdown.picture(host ?? "") : words}
      {aside && <small class="host"> {aside}</small>}
    </a>
  );
}

const markId = (ids: string, number: number) => `${ids}-mark-${number}`;
const noteId = (ids: string, number: number) => `${ids}-note-${number}`;

/** The part of the URL after `#` selects the view of the page, so an ordinary link would leave the view. */
function Jump(props: { to: string; id?: string; label: string; children: string }) {
  const jump = () => {
    const target = document.getElementById(props.to);
    target?.scrollIntoView({ block: "nearest" });
    target?.focus();
  };
  return (
    <button type="button" class="jump" id={props.id} aria-label={props.label} onClick={jump}>
      {props.children}
    </button>
  );
}

function FootnoteMark({ number }: { number: number }) {
  const ids = useContext(IdsOf);
  return (
    <sup>
      <Jump id={markId(ids, number)} to={noteId(ids, number)} label={t().markdown.footnote(number)}>
        {String(number)}
      </Jump>
    </sup>
  );
}

function Footnote({ number, children: words }: { number: number; children: (string | VNode)[] }) {
  const ids = useContext(IdsOf);
  return (
    <li id={noteId(ids, number)} tabIndex={-1} dir="auto">
      {words}{" "}
      <Jump to={markId(ids, number)} label={t().markdown.back(number)}>
        ↩
      </Jump>
    </li>
  );
}
