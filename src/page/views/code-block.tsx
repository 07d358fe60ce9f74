// A block of code: in parts while it grows, coloured when it is complete, and plain if it is long or its language is unknown.

import type { VNode } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { Copy } from "../components.tsx";
import { growingParts } from "../growing-parts.ts";
import type { Piece } from "../highlight.ts";
import { lazy } from "../lazy.tsx";
import { t } from "../texts.ts";

interface CodeBlockProps {
  readonly code: string;
  readonly language: string | undefined;
  readonly isClosed: boolean;
  readonly isTooLong: boolean;
}

export function CodeBlock({ code, language, isClosed, isTooLong }: CodeBlockProps) {
  const [drawing, setDrawing] = useState<DrawingState>("none");
  const [attempt, setAttempt] = useState(0);
  const isDiagram = isClosed && language?.toLowerCase() === "mermaid";
  return (
    <figure class="code-block" dir="ltr">
      <figcaption>
        <span>{isTooLong ? t().markdown.tooLong : (language ?? t().markdown.plainText)}</span>
        <span class="row">
          {isDiagram && (
            <Draw
              drawing={drawing}
              onDraw={() => {
                setAttempt((before) => before + 1);
                setDrawing("begun");
              }}
              onEnd={() => setDrawing("none")}
            />
          )}
          <Copy text={() => code} />
        </span>
      </figcaption>
      {drawing !== "none" && (
        <Diagram
          key={attempt}
          source={code}
          onDrawn={() => setDrawing("drawn")}
          onFailed={() => setDrawing("failed")}
        />
      )}
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, so keyboard users must be able to focus it. */}
      <pre tabIndex={0} hidden={drawing === "drawn"}>
        <Code code={code} language={isClosed ? language : undefined} />
      </pre>
    </figure>
  );
}

type DrawingState = "none" | "begun" | "drawn" | "failed";

const Diagram = lazy(async () => (await import("./diagram.tsx")).Diagram);

/** A single button for all actions, so that the focus stays on it when the action changes. */
function Draw({ drawing, onDraw, onEnd }: { drawing: DrawingState; onDraw: () => void; onEnd: () => void }) {
  const { draw, cancel, showSource } = t().diagram;
  const isOff = drawing === "none" || drawing === "failed";
  return (
    <button type="button" class="quiet" onClick={isOff ? onDraw : onEnd}>
      {isOff ? draw : drawing === "begun" ? cancel : showSource}
    </button>
  );
}

/** The maximum number of characters to colour at once. More would block the page. */
const MOST_COLOURED = 30_000;

function Code({ code, language }: { code: string; language: string | undefined }) {
  const [coloured, setColoured] = useState<{ code: string; pieces: readonly Piece[] }>();
  useEffect(() => {
    if (language === undefined || code.length > MOST_COLOURED) return undefined;
    let isShown = true;
    void inTurn(async () => {
      const { highlighted } = await import("../highlight.ts");
      const pieces = isShown ? await highlighted(code, language) : undefined;
      if (isShown && pieces) setColoured({ code, pieces });
    });
    return () => {
      isShown = false;
    };
  }, [code, language]);
  if (coloured?.code === code) return <code>{coloured.pieces.map(viewOf)}</code>;
  return <Growing code={code} />;
}

let last: Promise<void> = Promise.resolve();

/** Colours one block after another, with redraws between them. A block stays plain if its language cannot be loaded. */
function inTurn(work: () => Promise<void>): void {
  last = last
    .then(() => new Promise((resolve) => setTimeout(resolve)))
    .then(work, work)
    .catch(() => {});
}

const viewOf = (piece: Piece): VNode | string =>
  typeof piece === "string" ? piece : <span class={`code-${piece.scope}`}>{piece.pieces.map(viewOf)}</span>;

/** A full part is always the same element, so it is not drawn again. */
function Growing({ code }: { code: string }) {
  const cut = useRef<ReturnType<typeof growingParts>>(undefined);
  cut.current ??= growingParts();
  const drawn = useRef<{ part: string; view: VNode }[]>([]);
  const parts = cut.current(code);
  drawn.current = parts.map((part, at) => {
    const known = drawn.current[at];
    // biome-ignore lint/suspicious/noArrayIndexKey: parts are only added at the end.
    return known?.part === part ? known : { part, view: <span key={at}>{part}</span> };
  });
  return <code class="parts">{drawn.current.map(({ view }) => view)}</code>;
}
